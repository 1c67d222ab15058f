/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses how many threads this process computes with. The bits of a program (docs/programs.md)
 * depend on the number.
 */
#ifndef COXSWAIN_TRAIN_COMPUTE_THREADS_H
#define COXSWAIN_TRAIN_COMPUTE_THREADS_H

#include "common/job/job_document.h"
#include "worker/launch/arguments.h"
#include "worker/launch/crew.h"
#include "worker/launch/identity.h"

/* Returns --threads, else COXSWAIN_THREADS, else this process's share of the processors that it may
 * use. `crew` NULL: it shares them with nobody. */
int compute_threads(const struct arguments *arguments, const struct identity *identity, const struct crew *crew);

/* Makes the plugin that runs a job's program compute with so many threads. `job` NULL: of a process
 * without a crew. Call it from main before any thread starts (xla_set_environment). */
void compute_threads_set_environment(const struct arguments *arguments, const struct identity *identity,
                                     const struct job_document *job);

/* Begins this process anew with so many threads, which the crew wants (member_wanted_threads): a
 * plugin's threads cannot be changed once they run. Does not return where that succeeds: the program
 * is executed again with the same arguments and COXSWAIN_THREADS in its environment. Returns at once
 * where the number was chosen by the user. */
void compute_threads_begin_anew(int threads, const struct arguments *arguments, const struct identity *identity);

#endif
