/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a job's program ready to run: takes its compiled code from the job's own cache, or compiles it in a process of
 * its own, because a compiler that aborts must cost a sentence and not the worker.
 *
 * The cache is the folder COMPILATION_CACHE beside the checkpoints. A file's name says what it was compiled from, by what
 * and for which processor. Since it is machine code on storage that others may write to, each file carries a proof by the
 * crew's key (crew_key.h); without a key nothing is cached.
 */
#ifndef COXSWAIN_TRAIN_COMPILATION_H
#define COXSWAIN_TRAIN_COMPILATION_H

#include "common/contract/exit_code.h"
#include "common/error.h"
#include "worker/launch/arguments.h"
#include "worker/launch/identity.h"

#define COMPILATION_CACHE "compiled"

struct trainer;

/* Makes trainer->program, which was opened in `folder` for `uses` (enum program_use), ready. ERROR_INVALID, with the compiler's last words, if it cannot
 * be compiled or is not what its document says. */
int compilation_run(struct trainer *trainer, const char *folder, unsigned uses, struct error *error);

/* Runs coxswain-worker --compile-program, which compilation_run starts: compiles the program, prints what it needs, and
 * writes the code to the descriptor --compiled-to, if there is one. */
int compilation_run_apart(const struct arguments *arguments, const struct identity *identity, enum exit_code *ret_code,
                          struct error *error);

#endif
