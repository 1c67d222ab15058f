/* SPDX-License-Identifier: Apache-2.0
 *
 * A job as the cache keeps it. There may be ten thousand of them, of which a plan looks at one at a time, and a
 * training_job is large, since it has room for all that a job may say; so one is made of a record when it is needed.
 */
#ifndef COXSWAIN_CONTROLLER_JOB_RECORD_H
#define COXSWAIN_CONTROLLER_JOB_RECORD_H

#include "common/job/training_job.h"

struct job_record;

/* Of a job as the API server shows it. */
struct job_record *job_record_read(const struct json *object);
void job_record_free(struct job_record *record);

/* All that it points to lies in the record: it is not to be released. */
struct training_job job_record_view(const struct job_record *record);
/* What is wrong with its spec, NULL: nothing. */
const char *job_record_invalid(const struct job_record *record);

#endif
