/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the patch that writes a status: it changes the status in the cache into the wanted one, and
 * fails with a conflict if the object has been changed meanwhile.
 */
#ifndef COXSWAIN_CONTROLLER_STATUS_PATCH_H
#define COXSWAIN_CONTROLLER_STATUS_PATCH_H

#include "common/job/training_job.h"

/* Returns a JSON merge patch of the object, {"metadata":{"resourceVersion":…},"status":{…}}, with
 * null for fields that are removed. Free with json_free. */
struct json *status_patch_between(const char *resource_version, const struct json *before, const struct json *after);
/* The same for a job. */
struct json *status_patch(const struct training_job *job, const struct job_status *after);

#endif
