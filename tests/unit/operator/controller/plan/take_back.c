/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/take_back.h"

#include <criterion/criterion.h>

#include "tests/unit/operator/controller/plan/scene.h"

SCENE_SUITE(take_back)
{
    scene_init(&scene, 2);
    scene.job.framework = FRAMEWORK_PYTORCH;
    scene_run(&scene);
    scene.input.now_ms += 10000;
}

static void charge(int exit_code)
{
    scene_end_pod(&scene, &scene.pods[1], exit_code);
    expect_turn("job.failures=1 job.attempt=2");
}

Test(take_back, a_disruption_within_a_minute_explains_the_failure)
{
    charge(1);
    scene.input.now_ms += 59000;
    scene.pods[0].disruption_target = true;
    expect_turn("failures=0 disruptions=1 restart_count=1 (it is still one event) write_status=1");
    expect_plan("disruptions=1 (and is counted once)");
}

/* The cache shows it no longer, and we had not asked it to end. */
static void vanish(void)
{
    scene.list[0] = scene.list[1];
    scene.input.pod_count = 1;
    scene.input.memory.vanished_attempt = 1;
    scene.input.memory.vanished_ms = scene.input.now_ms;
}

Test(take_back, a_pod_that_vanishes_within_a_minute_explains_it_too)
{
    charge(1);
    scene.input.now_ms += 5000;
    vanish();
    expect_turn("failures=0 disruptions=1");
    expect_plan("disruptions=1 (once)");
}

Test(take_back, a_pod_that_had_vanished_before_explains_nothing)
{
    scene.input.memory.vanished_attempt = 1;
    scene.input.memory.vanished_ms = scene.input.now_ms - 5000;
    charge(1);
    expect_plan("failures=1");
}

Test(take_back, a_vanished_pod_of_another_attempt_explains_nothing)
{
    charge(1);
    vanish();
    scene.input.memory.vanished_attempt = 2;
    expect_plan("failures=1");
}

Test(take_back, a_disruption_after_a_minute_explains_nothing)
{
    charge(1);
    scene.input.now_ms += 60000;
    scene.pods[0].disruption_target = true;
    expect_plan("failures=1");
}

Test(take_back, the_operators_own_deletion_explains_nothing)
{
    charge(1);
    scene.pods[0].deletion_ms = scene.input.now_ms;
    expect_plan("failures=1 disruptions=0");
}

Test(take_back, a_failure_by_a_signal_is_not_taken_back)
{
    charge(139);
    scene.pods[0].disruption_target = true;
    expect_plan("failures=1");
}

Test(take_back, a_disruption_of_another_crew_explains_nothing)
{
    scene.pods[0].disruption_target = true;
    scene_end_pod(&scene, &scene.pods[0], 143);
    scene_end_pod(&scene, &scene.pods[1], 143);
    expect_turn("job.disruptions=1");
    scene_add_pod(&scene, ROLE_WORKER, 0, 2);
    struct pod_view *failed = scene_add_pod(&scene, ROLE_WORKER, 1, 2);
    scene_turn(&scene);
    scene.input.now_ms += 5000;
    scene_end_pod(&scene, failed, 1);
    scene_turn(&scene);
    expect_plan("failures=1 disruptions=1");
}

/* Counts a failure in a crew that goes on without the pod. */
static void charge_one(int exit_code)
{
    scene_end_pod(&scene, &scene.pods[1], exit_code);
    expect_turn("job.failures=1");
    scene.input.now_ms += 5000;
}

Test(take_back, where_only_the_pod_was_replaced_the_disruption_counts_by_itself)
{
    scene.job.run_policy.restart_scope = RESTART_SCOPE_POD;
    charge_one(1);
    scene.pods[0].disruption_target = true;
    scene_end_pod(&scene, &scene.pods[0], 143);
    expect_plan("failures=0 disruptions=1 ignored=1 restart_count=2");
}

/* Else the next that only follows from another's end would be taken for one that repeats. */
Test(take_back, a_later_consequence_is_let_off_as_if_no_failure_was_counted)
{
    scene.job.run_policy.restart_scope = RESTART_SCOPE_POD;
    charge_one(1);
    scene.pods[0].disruption_target = true;
    scene_end_pod(&scene, &scene.pods[0], 143);
    scene_turn(&scene);
    scene.list[0] = scene_add_pod(&scene, ROLE_WORKER, 0, 3);
    scene.list[1] = scene_add_pod(&scene, ROLE_WORKER, 1, 3);
    scene.input.pod_count = 2;
    scene_turn(&scene);
    scene_end_pod(&scene, &scene.pods[scene.pod_count - 1], 138);
    expect_plan("restart_count=3 failures=0");
}

/* ---- at the limit */

static void charge_at_the_limit(void)
{
    scene.job.run_policy.backoff_limit = 0;
    charge(1);
    scene_turn(&scene);
}

static void expect_exceeded(void)
{
    cr_assert_str_eq(scene_reason(&scene, CONDITION_FAILED, CONDITION_TRUE), "BackoffLimitExceeded");
}

Test(take_back, at_the_limit_nothing_is_done_until_its_time_is_over)
{
    charge_at_the_limit();
    scene_expect("job.terminal=0 Restarting:True=PodFailed");
    expect_plan("actions=0 (nothing is created, and nobody sent away)");
    cr_assert_leq(scene.plan.requeue_ms, scene.input.now_ms + TAKE_BACK_MS, "looks again when the time is over");
    cr_assert_str_eq(scene_reason(&scene, CONDITION_SCHEDULED, CONDITION_FALSE), "BackoffLimitSpent");
    scene_accept(&scene);
}

Test(take_back, a_disruption_may_explain_the_last_failure_too)
{
    charge_at_the_limit();
    scene.input.now_ms += 59000;
    scene.pods[0].disruption_target = true;
    expect_plan("terminal=0 failures=0 disruptions=1 delete_pod=1 (the crew starts over)");
}

Test(take_back, without_a_disruption_the_job_fails_when_the_time_is_over)
{
    charge_at_the_limit();
    scene.input.now_ms += 60000;
    scene_plan(&scene);
    expect_exceeded();
    cr_assert_str_eq(scene.plan.status.conditions[CONDITION_FAILED].message,
                     "worker 1: pod digits-worker-1-1 exited with code 1; backoffLimit 0 exceeded");
    cr_assert_eq(scene_count(&scene, ACTION_CREATE_POD), 0);
}

Test(take_back, a_crew_with_no_pod_left_fails_at_once)
{
    charge_at_the_limit();
    scene.input.now_ms += 5000;
    scene_end_pod(&scene, &scene.pods[0], 1);
    scene_plan(&scene);
    expect_exceeded();
}

Test(take_back, pods_that_all_ended_by_themselves_fail_the_job_at_once)
{
    scene.job.run_policy.backoff_limit = 0;
    scene_end_pod(&scene, &scene.pods[0], 1);
    scene_end_pod(&scene, &scene.pods[1], 1);
    scene_plan(&scene);
    expect_exceeded();
}

Test(take_back, a_failure_that_no_disruption_can_explain_fails_the_job_at_once)
{
    scene.job.run_policy.backoff_limit = 0;
    scene_end_pod(&scene, &scene.pods[1], 139);
    scene_plan(&scene);
    expect_exceeded();
    cr_assert_eq(scene.plan.status.incarnation, 1);
}

Test(take_back, a_disruption_that_is_seen_with_the_last_failure_explains_it)
{
    scene.job.run_policy.backoff_limit = 0;
    scene_end_pod(&scene, &scene.pods[1], 1);
    scene.input.now_ms += 2000;
    scene_end_pod(&scene, &scene.pods[0], 143);
    scene.pods[0].disruption_target = true;
    expect_turn("terminal=0");
    expect_plan("failures=0 disruptions=1");
}

Test(take_back, a_failure_is_taken_back_also_if_no_pod_is_left)
{
    scene.job.run_policy.backoff_limit = 0;
    scene_end_pod(&scene, &scene.pods[1], 1);
    scene.input.now_ms += 2000;
    vanish();
    expect_turn("terminal=0 failures=1");
    expect_plan("failures=0 disruptions=1");
}

Test(take_back, a_member_that_goes_on_does_not_hide_that_the_limit_is_spent)
{
    scene.job.run_policy.restart_scope = RESTART_SCOPE_POD;
    scene.job.run_policy.backoff_limit = 0;
    charge_one(1);
    cr_assert_not(status_terminal(&scene.job.status));
    expect_plan("create_pod=0");
    scene.input.now_ms += 55000;
    scene_plan(&scene);
    expect_exceeded();
}

Test(take_back, a_job_that_is_suspended_at_its_limit_fails_when_it_is_resumed)
{
    charge_at_the_limit();
    scene.job.suspend = true;
    for (int turn = 0; turn < 3; turn++) {
        scene_turn(&scene);
        scene.input.pod_count = 0;
    }
    cr_assert_str_eq(scene_reason(&scene, CONDITION_SUSPENDED, CONDITION_TRUE), "Suspended");
    scene.job.suspend = false;
    scene.input.now_ms += 60000;
    for (int turn = 0; turn < 2; turn++)
        scene_turn(&scene);
    expect_exceeded();
    cr_assert_str_eq(scene.job.status.conditions[CONDITION_FAILED].message, "backoffLimit 0 exceeded");
}
