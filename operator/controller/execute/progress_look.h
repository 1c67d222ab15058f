/* SPDX-License-Identifier: Apache-2.0
 *
 * Notes in a job's entry when this operator asked the chief, the pod that leads the job, for its
 * progress and was answered, whether the answer had any progress in it or not. The plan needs it for
 * progressDeadlineSeconds (plan/progress_deadline.h). Each source of progress (progress_poll.h,
 * log_reader.h) notes its answers here.
 */
#ifndef COXSWAIN_CONTROLLER_PROGRESS_LOOK_H
#define COXSWAIN_CONTROLLER_PROGRESS_LOOK_H

#include "operator/controller/execute/job_entry.h"
#include "operator/controller/objects/progress_push.h"

/* Notes an answer of that pod to a question of `asked_ms`. `found`: it had a step, an epoch or a metric. */
void progress_look_note(struct job_entry *entry, const char *pod_uid, int64_t asked_ms, bool found);

/* Returns what is noted of the present chief. */
struct look_input progress_look_of(const struct job_entry *entry, const struct training_job *job);

/* Returns whether the job's progress is what its script sends (push_intake.h), so that nobody is asked. Where the log may tell it, that
 * is so once a script of this attempt has sent a report. */
bool progress_look_is_pushed(const struct job_entry *entry, const struct training_job *job,
                             const struct push_endpoint *endpoint);

/* Returns what is known of such a job. The silence of a script counts only once a pod of this attempt has sent a report: before, its pods
 * may lack a valid token, as those of a job do that is older than the operator's keys. It counts from `since_ms` on, when this operator
 * began to take reports; FIELD_UNSET: pods cannot reach it. */
struct look_input progress_look_of_push(const struct job_entry *entry, const struct training_job *job, int64_t since_ms,
                                        int64_t now_ms);

#endif
