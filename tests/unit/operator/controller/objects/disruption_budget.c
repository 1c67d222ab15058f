/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/disruption_budget.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "common/contract/labels.h"
#include "common/yaml.h"

static struct json *budget_of(const char *workers, const char *run_policy)
{
    char yaml[1024];
    struct error error = ERROR_INIT;
    struct json *documents = NULL;
    struct training_job job;
    snprintf(yaml, sizeof yaml,
             "metadata: {name: digits, namespace: ml, uid: u-1}\n"
             "spec:\n"
             "  workers: {%s}\n"
             "  runPolicy: {%s}\n"
             "  coxswain:\n"
             "    strategy: {type: MultiWorkerMirrored}\n"
             "    model: {preset: mlp}\n"
             "    data: {format: Synthetic, examples: 1000}\n"
             "    training: {steps: 10, batchSize: 100, optimizer: {type: SGD}}\n",
             workers, run_policy);
    cr_assert_eq(yaml_parse(yaml, strlen(yaml), 4096, &documents, &error), 0, "%s", error.message);
    cr_assert_eq(training_job_parse(json_first(documents), &job, &error), 0, "%s", error.message);
    struct json *budget = disruption_budget_build(&job);
    training_job_release(&job);
    json_free(documents);
    return budget;
}

Test(disruption_budget, a_job_has_one_if_it_asks_for_it)
{
    cr_assert_null(budget_of("replicas: 3", ""));
    SCOPED_JSON *budget = budget_of("replicas: 3", "disruptionBudget: {}");
    cr_assert_eq(json_integer_at(budget, "spec.minAvailable", 0), 3);
    cr_assert_str_eq(json_string_at(budget, "metadata.name", ""), "digits-budget-u-1");
    cr_assert_str_eq(json_string_at(budget, "spec.unhealthyPodEvictionPolicy", ""), "AlwaysAllow");
    const struct json *labels = json_at(budget, "spec.selector.matchLabels");
    cr_assert_str_eq(json_string(json_member(labels, LABEL_JOB_UID), ""), "u-1");
    cr_assert_str_eq(json_string(json_member(labels, LABEL_CURRENT), ""), "true");
}

Test(disruption_budget, an_elastic_crew_keeps_its_least)
{
    SCOPED_JSON *elastic = budget_of("replicas: 3, minReplicas: 2, maxReplicas: 4", "disruptionBudget: {}");
    cr_assert_eq(json_integer_at(elastic, "spec.minAvailable", 0), 2);
    SCOPED_JSON *given = budget_of("replicas: 3", "disruptionBudget: {minAvailable: 1}");
    cr_assert_eq(json_integer_at(given, "spec.minAvailable", 0), 1);
}
