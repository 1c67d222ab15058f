/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks the options --volume CLAIM=DIR of `cox run` against the job before any pod starts. The embedded control plane would ignore a
 * claim that no pod mounts, and a pod would wait forever for a directory that does not exist.
 */
#ifndef COXSWAIN_CLI_VOLUME_OPTIONS_H
#define COXSWAIN_CLI_VOLUME_OPTIONS_H

#include "common/error.h"
#include "common/json.h"

/* Returns the directory that one of `volumes` ("claim=directory") gives to the claim; NULL: none does. It points into that text. */
const char *volume_options_find(const char *const *volumes, unsigned count, const char *claim);

/* `spec` is that of the job, or a sweep's template. ERROR_INVALID if one of `volumes` names a claim that the job does not have (the
 * message lists the job's claims), or not a directory; ERROR_NOT_FOUND if the directory does not exist. */
int volume_options_check(const struct json *spec, const char *const *volumes, unsigned count, struct error *error);

/* Checks that the data of a job has files before any pod starts. `directory`: where a claim without a --volume gets a folder of its
 * name. ERROR_INVALID if the claim of the job's data has no --volume and that folder is missing or empty; not if its storage has a
 * `download`, or the pods have init containers, which may fill it. */
int volume_options_check_data(const struct json *spec, const char *const *volumes, unsigned count,
                              const char *directory, struct error *error);

#endif
