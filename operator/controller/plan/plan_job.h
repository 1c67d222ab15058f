/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the plan of a job (plan.h): calls the policies one after the other, brings the status up to date, and decides whether it is to be
 * written now.
 */
#ifndef COXSWAIN_CONTROLLER_PLAN_JOB_H
#define COXSWAIN_CONTROLLER_PLAN_JOB_H

#include "operator/controller/plan/plan.h"

/* Plans what to do about a job that exists. */
void plan_job(const struct plan_input *input, struct plan *ret_plan);
/* Plans for the pods of a job that no longer exists: `job` has only its names and the defaults. */
void plan_without_job(const struct plan_input *input, struct plan *ret_plan);
/* Returns whether the plan only informs people that pods of a crew come and go: it has no action,
 * no promise that pods wait for, nothing that counts against a limit, and does not end the job. */
bool plan_only_informs(const struct plan *plan, const struct job_status *old);

#endif
