/* SPDX-License-Identifier: Apache-2.0
 *
 * What an event costs. Each is counted once, in the counter of its class;
 * backoffLimit bounds the failures and the deaths by lack of memory together.
 */
#ifndef COXSWAIN_CONTROLLER_LIMIT_H
#define COXSWAIN_CONTROLLER_LIMIT_H

#include "common/job/training_job.h"
#include "operator/controller/plan/ending.h"

void limit_count(struct job_status *status, enum ending_kind kind);
bool limit_exceeded(const struct job_status *status, const struct run_policy *policy);

#endif
