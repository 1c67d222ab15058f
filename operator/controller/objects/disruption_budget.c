/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/disruption_budget.h"

#include "common/contract/labels.h"
#include "common/job/job_roles.h"
#include "operator/controller/objects/child_metadata.h"
#include "operator/controller/objects/job_secret.h"

static int64_t min_available(const struct training_job *job)
{
    int64_t given = job->run_policy.disruption_budget.min_available, sum = 0;
    for (int role = 0; role < ROLE_COUNT; role++)
        sum += role == ROLE_EVALUATOR ? 0 : job_role_minimum(job, (enum role)role);
    return given != FIELD_UNSET ? given : sum;
}

struct json *disruption_budget_build(const struct training_job *job)
{
    if (!job->run_policy.has_disruption_budget)
        return NULL;
    struct json *budget = json_new_object();
    SCOPED_FREE char *name = job_secret_name(job, "budget");
    json_set_string(budget, "apiVersion", "policy/v1");
    json_set_string(budget, "kind", "PodDisruptionBudget");
    child_metadata_fill(json_set(budget, "metadata", json_new_object()), job, name);
    struct json *spec = json_set(budget, "spec", json_new_object());
    json_set_integer(spec, "minAvailable", min_available(job));
    json_set_string(spec, "unhealthyPodEvictionPolicy", "AlwaysAllow");
    struct json *selector = json_set(spec, "selector", json_new_object());
    struct json *labels = json_set(selector, "matchLabels", json_new_object());
    json_set_string(labels, LABEL_JOB_UID, job->uid);
    json_set_string(labels, LABEL_CURRENT, "true");
    return budget;
}
