/* SPDX-License-Identifier: Apache-2.0
 *
 * Records when the chief, the pod that leads the job, last answered a progress query of this operator,
 * even if without progress. The plan needs it for progressDeadlineSeconds (plan/progress_deadline.h).
 * Each source of progress (progress_poll.h, log_reader.h) records its answers here.
 */
#ifndef COXSWAIN_CONTROLLER_PROGRESS_ANSWERS_H
#define COXSWAIN_CONTROLLER_PROGRESS_ANSWERS_H

#include "operator/controller/execute/job_entry.h"
#include "operator/controller/objects/progress_push.h"

/* Records that the pod answered a query of `asked_ms`. `found`: the answer had a step, an epoch or a metric. */
void progress_answers_note(struct job_entry *entry, const char *pod_uid, int64_t asked_ms, bool found);

/* Returns what is recorded of the present chief. */
struct answers_input progress_answers_of(const struct job_entry *entry, const struct training_job *job);

/* Returns true if the script pushes the job's progress (push_intake.h), so that the operator need not poll. If the log may have it, too,
 * that is the case once a script of this attempt has sent a report. */
bool progress_answers_is_pushed(const struct job_entry *entry, const struct training_job *job,
                                const struct push_endpoint *endpoint);

/* Returns what is recorded of a job whose script pushes. The silence of a script counts only once a pod of this attempt has sent a
 * report: before, its pods may lack a valid token, as those of a job do that is older than the operator's keys. It counts from `since_ms`
 * on, when this operator began to take reports; FIELD_UNSET: pods cannot reach this operator. */
struct answers_input progress_answers_of_push(const struct job_entry *entry, const struct training_job *job,
                                              int64_t since_ms, int64_t now_ms);

#endif
