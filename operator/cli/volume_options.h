/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks `cox run --volume CLAIM=DIR` against the job before any pod starts: the node of the embedded control plane ignores a claim
 * that no pod mounts, and a pod whose directory is missing waits for it without end.
 */
#ifndef COXSWAIN_CLI_VOLUME_OPTIONS_H
#define COXSWAIN_CLI_VOLUME_OPTIONS_H

#include "common/error.h"
#include "common/json.h"

/* ERROR_INVALID with the job's claims when one of `volumes` names another; ERROR_NOT_FOUND when its directory is missing. */
int volume_options_check(const struct json *job, const char *const *volumes, unsigned count, struct error *error);

#endif
