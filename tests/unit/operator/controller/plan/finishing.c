/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/finishing.h"

#include <criterion/criterion.h>

#include "tests/unit/operator/controller/plan/scene.h"

SCENE_SUITE(finishing)
{
    scene_init(&scene, 4);
    scene.job.framework = FRAMEWORK_PYTORCH;
    scene.job.elastic = (struct elastic_spec){.enabled = true, .min_workers = 2, .max_workers = 8};
    scene_run(&scene);
    scene.input.now_ms += 3600000;
}

static void finish(size_t pod)
{
    scene_end_pod(&scene, &scene.pods[pod], 0);
}

static void find_no_node(size_t pod)
{
    scene.pods[pod].phase = POD_PENDING;
    scene.pods[pod].ready = scene.pods[pod].scheduled = false;
    scene.pods[pod].started_ms = scene.pods[pod].startable_ms = FIELD_UNSET;
    scene.pods[pod].unschedulable = "0/3 nodes are available";
}

static void expect_success(const char *message)
{
    expect_plan("Succeeded:True=WorkersSucceeded");
    cr_assert_str_eq(scene.plan.status.conditions[CONDITION_SUCCEEDED].message, message);
    cr_assert_eq(scene.plan.status.restart_count, 0);
}

static void expect_to_go_on(void)
{
    expect_turn("Succeeded:True= restart_count=0 incarnation=1 create_pod=0");
}

#define THREE_OF_FOUR "3 of 4 workers are done: exit code 0; workers.minReplicas is 2, and no worker still runs"

Test(finishing, one_for_which_there_is_no_room_is_not_waited_for)
{
    for (size_t i = 0; i < 3; i++)
        finish(i);
    find_no_node(3);
    scene.input.now_ms += 60000;
    expect_success(THREE_OF_FOUR);
}

Test(finishing, those_at_work_are_waited_for)
{
    finish(1);
    finish(2);
    find_no_node(3);
    scene.input.now_ms += 60000;
    expect_to_go_on();
    cr_assert_str_eq(scene_reason(&scene, CONDITION_RUNNING, CONDITION_TRUE), "CrewSufficient");
    cr_assert_str_eq(scene.plan.status.conditions[CONDITION_RUNNING].message,
                     "a worker has finished, so training is over: the other workers run to their end, and no worker is "
                     "created or waited for any more");
    finish(0);
    scene.input.now_ms += 60000;
    expect_success(THREE_OF_FOUR);
}

Test(finishing, the_first_is_needed)
{
    for (size_t i = 1; i < 4; i++)
        finish(i);
    scene.input.now_ms += 60000;
    expect_to_go_on();
    scene_end_pod(&scene, &scene.pods[0], 137);
    expect_plan("attempt=2 worker.pending=0-3 worker.completed=none");
}

Test(finishing, a_crew_that_grows_at_its_end_gets_nobody_new)
{
    finish(1);
    scene_turn(&scene);
    scene.job.document.workers = 6;
    expect_to_go_on();
    cr_assert_eq(scene.job.status.workers, 4);
    finish(0);
    finish(2);
    finish(3);
    scene.input.now_ms += 60000;
    expect_success("4 of 6 workers are done: exit code 0; workers.minReplicas is 2, and no worker still runs");
}

Test(finishing, a_worker_that_fails_then_is_not_replaced_and_costs_nothing)
{
    finish(1);
    scene_end_pod(&scene, &scene.pods[3], 1);
    expect_to_go_on();
    scene.list[3] = scene.list[2]; /* vanished as well */
    scene.input.pod_count = 3;
    expect_to_go_on();
    cr_assert_str_eq(scene_reason(&scene, CONDITION_SCHEDULED, CONDITION_TRUE), "AllScheduled");
    finish(0);
    finish(2);
    scene.input.now_ms += 60000;
    expect_success(THREE_OF_FOUR);
}

Test(finishing, a_successor_that_has_not_come_yet_is_made_no_more)
{
    scene.job.status.restart_count = 5;
    scene_end_pod(&scene, &scene.pods[3], 1);
    scene.pods[3].started_ms = scene.pods[3].finished_ms;
    expect_turn("job.worker.pending=3");
    cr_assert_neq(scene.job.status.backoff_until_ms, FIELD_UNSET);
    finish(1);
    scene.input.now_ms += 3600000;
    expect_plan("create_pod=0 worker.pending=none backoff_until_ms=unset Restarting:False=CrewSufficient");
}

Test(finishing, a_refused_pod_that_would_come_too_late_ends_no_job)
{
    scene_end_pod(&scene, &scene.pods[3], 1);
    scene_turn(&scene);
    finish(1);
    scene.input.memory.obstacle = (struct obstacle){.kind = OBSTACLE_REJECTED, .message = "no"};
    expect_plan("Failed:True=");
}

Test(finishing, a_worker_that_started_after_the_first_had_ended_is_not_waited_for)
{
    finish(0);
    finish(1);
    finish(2);
    scene.input.now_ms += 60000;
    expect_to_go_on();
    scene.pods[3].started_ms = scene.pods[0].finished_ms + 1000;
    expect_success(THREE_OF_FOUR);
}

/* Somebody drains its node, or collects what has ended. */
static void remove_first(void)
{
    scene_turn(&scene);
    scene.list[0] = scene.list[3];
    scene.input.pod_count = 3;
}

Test(finishing, a_late_worker_is_known_when_the_first_workers_pod_is_gone)
{
    finish(0);
    finish(1);
    scene.pods[3].started_ms = scene.input.now_ms + 1000;
    remove_first();
    scene.input.now_ms += 60000;
    expect_to_go_on();
    finish(2);
    scene.input.now_ms += 60000;
    expect_success(THREE_OF_FOUR);
}

Test(finishing, an_early_worker_is_waited_for_without_the_first_workers_pod)
{
    finish(0);
    finish(1);
    finish(2);
    remove_first();
    scene.input.now_ms += 60000;
    expect_to_go_on();
    cr_assert_eq(scene.plan.status.chief_finish_ms, scene.pods[0].finished_ms);
    scene.job.elastic.min_workers = 4;
    scene_end_pod(&scene, &scene.pods[3], 1);
    expect_plan("attempt=2 chief_finish_ms=unset (it has yet to finish)");
}

Test(finishing, where_too_few_are_left_the_whole_crew_starts_over)
{
    scene.job.elastic.min_workers = 3;
    finish(2);
    scene_end_pod(&scene, &scene.pods[3], 1);
    expect_to_go_on();
    scene_end_pod(&scene, &scene.pods[1], 1);
    expect_plan("attempt=2 failures=1 (both are one event) worker.pending=0-3 worker.completed=none");
}

#define GRACE_MS 30000

/* Its node is silent: it was asked to end, and nothing ever tells that it has. */
static int64_t lose_node(size_t pod)
{
    scene.pods[pod].deletion_ms = scene.input.now_ms;
    scene.pods[pod].grace_ms = GRACE_MS;
    return scene.input.now_ms + GRACE_MS + scene.options.dead_node_ms;
}

Test(finishing, one_on_a_dead_node_is_not_waited_for)
{
    for (size_t i = 0; i < 3; i++)
        finish(i);
    int64_t due_ms = lose_node(3);
    scene.input.now_ms = due_ms - 1;
    expect_to_go_on();
    cr_assert_leq(scene.plan.requeue_ms, due_ms, "it is looked at again in time");
    scene.input.now_ms = due_ms;
    expect_success(THREE_OF_FOUR);
}

Test(finishing, the_first_on_a_dead_node_lets_the_whole_crew_start_over)
{
    for (size_t i = 1; i < 4; i++)
        finish(i);
    int64_t due_ms = lose_node(0);
    scene.input.now_ms = due_ms - 1;
    expect_to_go_on();
    cr_assert_leq(scene.plan.requeue_ms, due_ms);
    scene.input.now_ms = due_ms;
    expect_plan("attempt=2 disruptions=1");
    cr_assert_str_neq(scene_reason(&scene, CONDITION_RESTARTING, CONDITION_TRUE), "");
}

Test(finishing, what_a_rule_calls_the_end_of_the_job_is_its_end)
{
    struct failure_rule rule = {.action = FAILURE_FAIL, .has_exit_codes = true, .exit_codes = {EXIT_CODES_IN, {42}, 1}};
    scene.job.run_policy.failure_policy = (struct failure_policy){&rule, 1};
    finish(1);
    scene_end_pod(&scene, &scene.pods[3], 42);
    expect_plan("Failed:True=FailurePolicy");
}

Test(finishing, nobody_finishes_by_being_sent_away)
{
    finish(3);
    scene.pods[3].deletion_ms = scene.pods[3].finished_ms;
    scene_plan(&scene);
    scene.list[3] = NULL;
    scene.input.pod_count = 3;
    expect_plan("disruptions=1 worker.pending=3");
}

Test(finishing, a_crew_of_fixed_size_needs_all)
{
    scene.job.elastic.enabled = false;
    for (size_t i = 0; i < 3; i++)
        finish(i);
    find_no_node(3);
    scene.input.now_ms += 60000;
    expect_to_go_on();
}
