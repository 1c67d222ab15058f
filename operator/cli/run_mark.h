/* SPDX-License-Identifier: Apache-2.0
 *
 * Marks state directories whose volumes another run was given by --volume: their file used-by (STATE_USERS) has a line with the state
 * directory of each such run. `cox run` writes it, and `cox runs delete` and `prune` read it, so that a run's files are kept for a run
 * whose own state directory is anywhere on this machine.
 */
#ifndef COXSWAIN_CLI_RUN_MARK_H
#define COXSWAIN_CLI_RUN_MARK_H

#include "common/error.h"
#include "common/json.h"

/* Writes the state directory `user` into the mark of each other state directory in which one of the volumes, {claim: directory}, lies. */
int run_mark_volumes(const char *user, const struct json *volumes, struct error *error);

/* Returns a state directory in the mark of `directory` that still exists and, by its record if it has one, still uses a volume there.
 * NULL: none. Free it with free(). */
char *run_mark_user(const char *directory);

#endif
