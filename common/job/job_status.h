/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the status of a TrainingJob from its JSON; job_status_to_json (training_job.h) writes it. Reading cannot fail: members that are
 * absent or wrong stay unset.
 */
#ifndef COXSWAIN_JOB_STATUS_H
#define COXSWAIN_JOB_STATUS_H

#include "common/job/training_job.h"

/* Reads a status. Members that are absent or wrong stay unset; strings go to the arena. */
void job_status_read(const struct json *object, struct job_status *status, struct arena *arena);

#endif
