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

/* Returns true if the job's progress comes from the reports that its script sends (push_intake.h), so that the operator need not read the
 * log. If the job also gives log patterns, this is so only once a script of this attempt has sent a report. */
bool progress_answers_is_pushed(const struct job_entry *entry, const struct training_job *job,
                                const struct push_endpoint *endpoint);

/* Returns what is recorded of a job whose script sends reports. That no report comes counts only after a pod of this attempt has sent one:
 * until then its pods may have an invalid token, because the job was created before the operator's present keys. The time without a report
 * counts from `since_ms` at the earliest, when this operator began to accept reports; FIELD_UNSET: pods cannot reach this operator. */
struct answers_input progress_answers_of_push(const struct job_entry *entry, const struct training_job *job,
                                              int64_t since_ms, int64_t now_ms);

#endif
