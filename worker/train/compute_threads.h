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

/* Sets the environment so that the plugin that runs the job's program computes with compute_threads() threads.
 * `job` NULL: for a process without a crew. Call it from main before any thread starts (xla_set_environment). */
void compute_threads_set_environment(const struct arguments *arguments, const struct identity *identity,
                                     const struct job_document *job);

/* Restarts this process so that it computes with `threads` threads, the number of the crew (member_wanted_threads) or of the checkpoint
 * (trainer_program.wanted_threads), because a plugin's threads cannot be changed once they run: executes the program again with the same arguments
 * and with COXSWAIN_THREADS set. Returns only if the user has chosen the number, or if executing fails. */
void compute_threads_begin_anew(int threads, const struct arguments *arguments, const struct identity *identity);

#endif
