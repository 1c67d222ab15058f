/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiles a program before training starts. A program is a model as StableHLO functions
 * (model/program.h), which the job gives (docs/programs.md) or its layers are translated to; a PJRT
 * plugin compiles it. trainer_model.c calls compilation_run when it opens the model.
 *
 * The compiler runs in a child process (coxswain-worker --compile-program or --compile-model). If a
 * signal ends it, it is started once more; if it crashes again, compilation_run returns an error with
 * its last message, and the worker can report why it ends.
 *
 * The compiled code is cached in the folder COMPILATION_CACHE beside the checkpoints. A file's name
 * is a digest of everything that the code depends on: the program, the worker's version, the plugin,
 * the processor and TPUs, the compilers' settings (XLA_FLAGS, LIBTPU_INIT_ARGS), and the number of
 * threads of a CPU's plugin. The file is machine code on storage that others may write to, so it
 * begins with a MAC by the crew's key (crew_key.h); a file whose MAC is wrong is ignored. Without a
 * key or a checkpoint directory nothing is cached. The 16 files that were used last are kept.
 */
#ifndef COXSWAIN_TRAIN_COMPILATION_H
#define COXSWAIN_TRAIN_COMPILATION_H

#include "common/contract/exit_code.h"
#include "common/error.h"
#include "common/job/job_document.h"
#include "worker/launch/arguments.h"
#include "worker/launch/identity.h"

#define COMPILATION_CACHE "compiled"

struct program;
struct trainer;
struct xla_options;

/* Makes trainer->xla.program ready to run on the devices of `options`: one that was opened in `folder` for `uses` (enum program_use), or
 * one of the job's layers if `folder` is NULL.
 * `threads` must be the number that compute_threads_set_environment has set. The devices are opened after the child has ended,
 * since one process at a time can use a machine's TPUs.
 *
 * ERROR_INVALID, with the compiler's last message: the program cannot be compiled, or does not match its program.json.
 * ERROR_NO_SPACE: it does not fit into a device's memory. ERROR_DEVICE: the compiler was killed twice, mostly for want of memory in
 * the host. Other errors: those of xla_client_open. */
int compilation_run(struct trainer *trainer, const char *folder, unsigned uses, const struct xla_options *options,
                    int threads, struct error *error);

/* Translates the job's preset or layers to a program for `uses`, in calls of up to `batch` examples. */
int compilation_lower(const struct job_document *job, int64_t batch, unsigned uses, struct program **ret_program,
                      struct error *error);

/* Implements coxswain-worker --compile-program, the child process of compilation_run: compiles the program, and writes the code to
 * the descriptor --compiled-to if it is given. With --topology it compiles for TPUs that this machine need not have, and prints
 * the memory that each function needs. */
int compilation_run_apart(const struct arguments *arguments, const struct identity *identity, enum exit_code *ret_code,
                          struct error *error);
/* Implements coxswain-worker --compile-model: the same for the job's preset or layers. */
int compilation_run_model(const struct arguments *arguments, const struct identity *identity,
                          const struct job_document *job, enum exit_code *ret_code, struct error *error);

#endif
