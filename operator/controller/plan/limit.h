/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts the ends of pods against spec.runPolicy.backoffLimit, for judge.c. Ends that one plan
 * finds together are counted once, in the counter of the kind of their cause; backoffLimit limits
 * the sum of failures and out-of-memory kills.
 *
 * The first end beyond the limit fails the job. The exception is a failure that a disruption may
 * still explain (take_back.h): the status then counts the failure and promises the next pods as
 * usual, but no pod is created and no end judged until the disruption is seen or the time for it
 * has passed.
 */
#ifndef COXSWAIN_CONTROLLER_LIMIT_H
#define COXSWAIN_CONTROLLER_LIMIT_H

#include "common/job/training_job.h"
#include "operator/controller/plan/ending.h"
#include "operator/controller/plan/planning.h"

/* Raises the counter of that kind, if it has one, and restart_count. */
void limit_count(struct job_status *status, enum ending_kind kind);
/* Returns whether there were more failures and out-of-memory kills than backoffLimit. */
bool limit_exceeded(const struct job_status *status, const struct run_policy *policy);

/* Fails the job. `last` describes the end that exceeded the limit; NULL: it is not known any
 * more. */
void limit_finish(struct planning *planning, const char *last);
/* Returns the message why a job that waits at its limit creates no pods. */
const char *limit_wait_words(struct planning *planning);

#endif
