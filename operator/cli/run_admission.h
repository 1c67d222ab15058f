/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds out whether the embedded API server accepts a manifest, before `cox run --fresh` deletes an earlier run: the manifest is applied to
 * an API server with an empty database, without operator and node. So the fields, types, ranges and rules are checked as they will be
 * afterwards, and no pod is started.
 */
#ifndef COXSWAIN_CLI_RUN_ADMISSION_H
#define COXSWAIN_CLI_RUN_ADMISSION_H

#include "operator/cli/manifest.h"

/* Checks the manifest. A sweep is also refused if the API server accepts none of the trials that start together (as the operator does,
 * which then ends the sweep). `state` is the earlier run's state directory, which is locked meanwhile; the database is in its STATE_CHECK.
 * Runs the loop. Returns the API server's refusal; ERROR_UNAVAILABLE if a run uses the directory; ERROR_CANCELLED once `*interrupted` is
 * set. */
int run_admission_check(const struct manifest *manifest, const char *state, struct event_loop *loop,
                        const bool *interrupted, struct error *error);

#endif
