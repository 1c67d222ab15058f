/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the JSON merge patch that writes the status of a job or a sweep. The patch changes the
 * status in the cache into the wanted one, and carries the cached resourceVersion: if the object
 * has been changed meanwhile, the API server refuses the patch with a conflict, and the plan is
 * made again.
 */
#ifndef COXSWAIN_CONTROLLER_STATUS_PATCH_H
#define COXSWAIN_CONTROLLER_STATUS_PATCH_H

#include "common/job/training_job.h"

/* Returns a JSON merge patch of the object, {"metadata":{"resourceVersion":…},"status":{…}}, with
 * null for fields that are removed. Free with json_free. */
struct json *status_patch_between(const char *resource_version, const struct json *before, const struct json *after);
/* Returns the merge patch that changes the job's status into `after`, with the job's resourceVersion. Free with json_free. */
struct json *status_patch(const struct training_job *job, const struct job_status *after);

#endif
