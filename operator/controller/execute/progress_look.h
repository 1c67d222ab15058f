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

/* Notes an answer of that pod to a question of `asked_ms`. `found`: it had a step, an epoch or a metric. */
void progress_look_note(struct job_entry *entry, const char *pod_uid, int64_t asked_ms, bool found);

/* Returns what is noted of the present chief. */
struct look_input progress_look_of(const struct job_entry *entry, const struct training_job *job);

#endif
