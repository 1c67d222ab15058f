/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the PodDisruptionBudget of a job with runPolicy.disruptionBudget. While it exists, the API server refuses evictions, such as those
 * of a drain, that would leave fewer ready pods than the job needs. It is created before the job's Service and goes with the job.
 */
#ifndef COXSWAIN_CONTROLLER_DISRUPTION_BUDGET_H
#define COXSWAIN_CONTROLLER_DISRUPTION_BUDGET_H

#include "common/job/training_job.h"

/* Returns the object; NULL if the job has no disruptionBudget. Free with json_free. Its name contains the job's UID, so one that exists is
 * this job's. */
struct json *disruption_budget_build(const struct training_job *job);

#endif
