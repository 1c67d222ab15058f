/* SPDX-License-Identifier: Apache-2.0
 *
 * The one write of a job's status: a patch that turns what the cache shows into what
 * should stand, and only if nobody was faster.
 */
#ifndef COXSWAIN_CONTROLLER_STATUS_PATCH_H
#define COXSWAIN_CONTROLLER_STATUS_PATCH_H

#include "common/job/training_job.h"

/* A JSON merge patch of the object: {"metadata":{"resourceVersion":…},"status":{…}}, with null for what goes. Free with
 * json_free. */
struct json *status_patch(const struct training_job *job, const struct job_status *after);

#endif
