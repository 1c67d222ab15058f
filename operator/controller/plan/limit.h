/* SPDX-License-Identifier: Apache-2.0
 *
 * What an event costs. Each is counted once, in the counter of its class;
 * backoffLimit bounds the failures and the deaths by lack of memory together.
 *
 * The one beyond it fails the job. Where a disruption may still explain a failure
 * (take_back.h), the status counts it and promises the successors as ever, but nothing
 * is created or judged until that has surfaced, or can no more.
 */
#ifndef COXSWAIN_CONTROLLER_LIMIT_H
#define COXSWAIN_CONTROLLER_LIMIT_H

#include "common/job/training_job.h"
#include "operator/controller/plan/ending.h"
#include "operator/controller/plan/planning.h"

void limit_count(struct job_status *status, enum ending_kind kind);
bool limit_exceeded(const struct job_status *status, const struct run_policy *policy);

/* The end of the job. `last` is what was beyond it, NULL: nobody knows any more. */
void limit_finish(struct planning *planning, const char *last);
/* Why nothing is created, of a job that waits at its limit. */
const char *limit_wait_words(struct planning *planning);

#endif
