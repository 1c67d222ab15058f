/* SPDX-License-Identifier: Apache-2.0
 *
 * Uses what a run of `cox run` on this machine has trained, for `cox predict` and `cox generate-text`: finds the run's manifest, or that of
 * a trial of a sweep, and the directories of its storages in the state directory, and runs coxswain-worker with them, which finds the
 * weights.
 */
#ifndef COXSWAIN_CLI_TRAINED_RUN_H
#define COXSWAIN_CLI_TRAINED_RUN_H

#include <getopt.h>
#include <stdbool.h>

#include "common/error.h"
#include "common/json.h"
#include "operator/cli/summary.h"

#define WORKER_WORDS_MAX 128

/* The words of a call of coxswain-worker; owned. Zero it first; release with worker_call_release. */
struct worker_call {
    char *words[WORKER_WORDS_MAX + 1]; /* ends with NULL */
    unsigned count;
};

/* Appends "--option=value", or "--option" if the value is NULL. Ignores what is more than WORKER_WORDS_MAX. */
void worker_call_add(struct worker_call *call, const char *option, const char *value);
void worker_call_release(struct worker_call *call);
/* Takes a command's options, which go to the worker as they are, except 'h' for --help; `known` is getopt_long's, with 0 for the others.
 * Returns an exit code when the command ends here, else -1: its other words are from optind on. */
int worker_call_read(struct worker_call *call, int count, char **words, const struct option *known, const char *usage);

/* Runs coxswain-worker with the job of a run, its storages, `option` with `value` (--predict or --generate) and more options, and
 * waits for it. `word` names a run (run_list.h), a trial of one, or the manifest of one whose state directory is the default one. Returns
 * the exit code of the command (docs/cox.md); says on stderr, after the command's name, why it could not be done. */
int trained_run_use(const char *command, const char *word, const char *option, const char *value,
                    const struct worker_call *options);

/* Adds the directory of one of a job's storages (summary.h), made absolute; it need not be there yet. Adds nothing for a storage that is
 * not on this machine. */
void worker_call_add_storage(struct worker_call *call, const struct storage_place *place, const struct json *job,
                             const char *name_space, const char *storage);

/* Adds the directories of a job's storages and of its checkpoints, as options of coxswain-worker. `state`: the state directory in which the
 * job has run; `volumes`: {claim: directory} of its --volume options, or NULL. */
void trained_run_add_storages(const char *state, const char *name_space, const struct json *volumes,
                              const struct json *job, struct worker_call *call);

/* Returns the command that uses what the job in the state directory has trained, such as "cox predict digits 0"; free it with free(). NULL:
 * the job is not one of Coxswain's worker, or leaves no weights. */
char *trained_run_command(const char *state, const struct json *job);

#endif
