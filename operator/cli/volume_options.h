/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks the options --volume CLAIM=DIR of `cox run` against the job before any pod starts. The embedded control plane would ignore a
 * claim that no pod mounts, and a pod would wait forever for a directory that does not exist.
 */
#ifndef COXSWAIN_CLI_VOLUME_OPTIONS_H
#define COXSWAIN_CLI_VOLUME_OPTIONS_H

#include "common/error.h"
#include "common/json.h"

/* `spec` is that of the job, or a sweep's template. ERROR_INVALID if one of `volumes` names a claim that the job does not have (the
 * message lists the job's claims), or not a directory; ERROR_NOT_FOUND if the directory does not exist. */
int volume_options_check(const struct json *spec, const char *const *volumes, unsigned count, struct error *error);

#endif
