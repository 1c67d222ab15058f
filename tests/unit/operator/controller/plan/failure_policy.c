/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/operator/controller/plan/scene.h"

static struct failure_rule rules[2];
static struct pod_condition_match conditions[1];

SCENE_SUITE(failure_policy)
{
    scene_init_running(&scene, 3);
    scene.input.now_ms += 60000;
    memset(rules, 0, sizeof rules);
    scene.job.run_policy.failure_policy = (struct failure_policy){.rules = rules, .rule_count = 1};
}

static void on_codes(struct failure_rule *rule, enum failure_action action, enum exit_code_operator operator,
                     int64_t code)
{
    *rule = (struct failure_rule){.action = action, .has_exit_codes = true};
    rule->exit_codes = (struct exit_code_match){.operator= operator, .values = {code}, .value_count = 1};
}

static void on_condition(struct failure_rule *rule, enum failure_action action)
{
    conditions[0] = (struct pod_condition_match){.type = "DisruptionTarget", .status = POD_CONDITION_TRUE};
    *rule = (struct failure_rule){.action = action, .conditions = conditions, .condition_count = 1};
}

static const struct job_status *end_with(int code)
{
    scene_end_pod(&scene, &scene.pods[1], code);
    scene_plan(&scene);
    return &scene.plan.status;
}

Test(failure_policy, ignore_replaces_and_counts_nothing)
{
    on_codes(&rules[0], FAILURE_IGNORE, EXIT_CODES_IN, 42);
    scene.job.run_policy.backoff_limit = 0;
    const struct job_status *status = end_with(42);
    cr_assert_eq(status->restarts.ignored, 1);
    cr_assert_eq(status->restarts.failures, 0);
    cr_assert_eq(status->restart_count, 1);
    cr_assert_str_eq(status->replicas[ROLE_WORKER].pending, "1");
    cr_assert_str_eq(scene_reason(&scene, CONDITION_RESTARTING, CONDITION_TRUE), "PodIgnored");
}

Test(failure_policy, fail_ends_the_job_and_says_which_rule)
{
    on_codes(&rules[0], FAILURE_FAIL, EXIT_CODES_NOT_IN, 1);
    end_with(137);
    cr_assert_str_eq(scene_reason(&scene, CONDITION_FAILED, CONDITION_TRUE), "FailurePolicy");
    cr_assert(strstr(scene.plan.status.conditions[CONDITION_FAILED].message, "rule 1 of failurePolicy says Fail"));
}

Test(failure_policy, count_makes_a_failure_of_what_would_be_permanent)
{
    on_codes(&rules[0], FAILURE_COUNT, EXIT_CODES_IN, 70);
    const struct job_status *status = end_with(70);
    cr_assert_eq(status->restarts.failures, 1);
    cr_assert_str_eq(scene_reason(&scene, CONDITION_FAILED, CONDITION_TRUE), "");
}

Test(failure_policy, the_first_rule_that_matches_decides)
{
    on_condition(&rules[0], FAILURE_COUNT);
    on_codes(&rules[1], FAILURE_FAIL, EXIT_CODES_IN, 137);
    scene.job.run_policy.failure_policy.rule_count = 2;
    scene.pods[1].disruption_target = true;
    scene.pods[1].conditions = "Ready=False\nDisruptionTarget=True\n";
    cr_assert_eq(end_with(137)->restarts.failures, 1, "a disruption that is to count");
    scene.pods[1].conditions = "DisruptionTarget=Trueish\nXDisruptionTarget=True\n";
    end_with(137);
    cr_assert_str_eq(scene_reason(&scene, CONDITION_FAILED, CONDITION_TRUE), "FailurePolicy");
}

Test(failure_policy, the_exit_code_of_a_pod_that_was_deleted_matches_no_rule)
{
    on_codes(&rules[0], FAILURE_FAIL, EXIT_CODES_IN, 143);
    scene.pods[1].deletion_ms = scene.input.now_ms - 1000;
    scene.pods[1].grace_ms = 30000;
    const struct job_status *status = end_with(143);
    cr_assert_eq(status->restarts.disruptions, 1);
    cr_assert_str_eq(scene_reason(&scene, CONDITION_FAILED, CONDITION_TRUE), "");
    scene.pods[1].disruption_target = true;
    end_with(143);
    cr_assert_str_eq(scene_reason(&scene, CONDITION_FAILED, CONDITION_TRUE), "FailurePolicy", "it was evicted");
    scene.pods[1].deletion_ms = FIELD_UNSET;
    scene.pods[1].disruption_target = false;
    end_with(143);
    cr_assert_str_eq(scene_reason(&scene, CONDITION_FAILED, CONDITION_TRUE), "FailurePolicy", "it ended by itself");
}

Test(failure_policy, success_and_what_matches_nothing_stay_what_they_are)
{
    on_codes(&rules[0], FAILURE_FAIL, EXIT_CODES_NOT_IN, 3);
    scene_end_pod(&scene, &scene.pods[1], 0);
    expect_plan("restart_count=0");
    cr_assert_eq(end_with(3)->completion_ms, scene.input.now_ms, "3 is permanent by itself");
    cr_assert_str_eq(scene_reason(&scene, CONDITION_FAILED, CONDITION_TRUE), "PermanentFailure");
}

/* A foreign worker's exit code 1 may be taken back when a disruption explains it; not where the user says Count. */
Test(failure_policy, what_is_to_count_is_not_taken_back)
{
    scene.job.framework = FRAMEWORK_PYTORCH;
    scene.job.status.charged_ms = FIELD_UNSET;
    on_codes(&rules[0], FAILURE_COUNT, EXIT_CODES_IN, 1);
    cr_assert_eq(end_with(1)->charged_ms, FIELD_UNSET);
    scene.job.run_policy.failure_policy.rule_count = 0;
    cr_assert_eq(end_with(1)->charged_ms, scene.input.now_ms);
}
