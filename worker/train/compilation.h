/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiles a program before training starts. A program is a model that is given as StableHLO
 * functions instead of layers (model/program.h, docs/programs.md); a PJRT plugin compiles it.
 * trainer_model.c calls compilation_run when it opens the model.
 *
 * The compiler runs in a child process (coxswain-worker --compile-program): if it crashes,
 * compilation_run returns an error with its last message, and the worker can report why it ends.
 *
 * The compiled code is cached in the folder COMPILATION_CACHE beside the checkpoints. A file's name
 * is a digest of the program, the worker's version, the plugin, the processor and TPUs, the compilers' settings
 * (XLA_FLAGS, LIBTPU_INIT_ARGS), and the number of threads, for which a CPU's plugin cuts the work when it compiles. Since the file is machine code on storage that
 * others may write to, it begins with a MAC by the crew's key (crew_key.h); a file whose MAC is wrong is
 * ignored. Without a key or a checkpoint directory nothing is cached.
 */
#ifndef COXSWAIN_TRAIN_COMPILATION_H
#define COXSWAIN_TRAIN_COMPILATION_H

#include "common/contract/exit_code.h"
#include "common/error.h"
#include "worker/launch/arguments.h"
#include "worker/launch/identity.h"

#define COMPILATION_CACHE "compiled"

struct trainer;
struct xla_options;

/* Makes trainer->program, which was opened in `folder` for `uses` (enum program_use), ready to run on the devices of `options`
 * with `threads` threads, which the environment has already (compute_threads_set_environment). The devices are opened after the
 * child has ended, since one process at a time can have a machine's TPUs.
 * ERROR_INVALID, with the compiler's last words, if it cannot be compiled or is not what its document says; ERROR_NO_SPACE, if
 * it does not fit into a device's memory; else as xla_client_open. */
int compilation_run(struct trainer *trainer, const char *folder, unsigned uses, const struct xla_options *options,
                    int threads, struct error *error);

/* Runs coxswain-worker --compile-program, which compilation_run starts: compiles the program, prints what it needs, and
 * writes the code to the descriptor --compiled-to, if there is one. With --topology it compiles for TPUs that this machine need
 * not have, and prints the memory of each function. */
int compilation_run_apart(const struct arguments *arguments, const struct identity *identity, enum exit_code *ret_code,
                          struct error *error);

#endif
