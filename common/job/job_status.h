/* SPDX-License-Identifier: Apache-2.0
 *
 * The status of a TrainingJob out of the resource; job_status_to_json
 * (training_job.h) is the way back.
 */
#ifndef COXSWAIN_JOB_STATUS_H
#define COXSWAIN_JOB_STATUS_H

#include "common/job/training_job.h"

/* Reads a status. Members that are absent or wrong stay unset; strings go to the arena. */
void job_status_read(const struct json *object, struct job_status *status, struct arena *arena);

#endif
