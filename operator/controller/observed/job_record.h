/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores a job compactly in the informer's cache. A struct training_job is large, because it has a
 * member for every setting, and there may be ten thousand jobs. A plan needs only one job at a
 * time, so the controller calls job_record_view to make the job's struct training_job when it plans
 * the job. A job with an invalid spec is stored too, together with the error. The defaults of the
 * job's class are merged into the stored spec; to save memory, the copy of the class in the stored
 * status is replaced by an empty object.
 */
#ifndef COXSWAIN_CONTROLLER_JOB_RECORD_H
#define COXSWAIN_CONTROLLER_JOB_RECORD_H

#include "common/job/training_job.h"

struct job_record;

/* Makes a record from the job's JSON object. */
struct job_record *job_record_read(const struct json *object);
void job_record_free(struct job_record *record);

/* Returns the job. Its pointers are borrowed from the record; do not release it. */
struct training_job job_record_view(const struct job_record *record);
/* Returns what is wrong with the job's spec; NULL: it is valid. */
const char *job_record_invalid(const struct job_record *record);

#endif
