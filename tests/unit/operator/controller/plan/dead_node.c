/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "operator/controller/execute/job_entry.h"
#include "tests/unit/operator/controller/plan/scene.h"

#define GRACE_MS 30000

/* Worker 1 was asked to end, and its node is silent; its successor is there. */
SCENE_SUITE(dead_node)
{
    scene_init_running(&scene, 2);
    scene.pods[1].deletion_ms = scene.input.now_ms;
    scene.pods[1].grace_ms = GRACE_MS;
    scene_turn(&scene);
    scene.pods[1].current = false;
    scene_add_pod(&scene, ROLE_WORKER, 1, 2);
    scene_turn(&scene);
}

static size_t forced_after(int64_t ms)
{
    scene.input.now_ms = scene.pods[1].deletion_ms + ms;
    scene_plan(&scene);
    return scene_count(&scene, ACTION_FORCE_DELETE_POD);
}

Test(dead_node, a_pod_of_ours_is_waited_for_and_then_removed)
{
    int64_t due_ms = GRACE_MS + scene.options.dead_node_ms;
    cr_assert_eq(forced_after(due_ms - 1), 0);
    cr_assert_leq(scene.plan.requeue_ms, scene.pods[1].deletion_ms + due_ms, "it is looked at again in time");
    cr_assert_eq(forced_after(due_ms), 1);
    cr_assert_str_eq(scene.plan.events[0].reason, "PodForceDeleted");
    cr_assert(scene.plan.events[0].of_action);
    scene.pods[1].grace_ms = 0;
    cr_assert_eq(forced_after(due_ms + 1), 0, "asked once; what keeps it is a finalizer");
}

/* ---- what its node says */

#define DUE_MS (GRACE_MS + scene.options.dead_node_ms)
static struct node_look look;

/* The pod has outlived its time by a minute, and its node was read just now. */
static size_t forced_on_node(enum node_state state, int64_t after_ms)
{
    scene.pods[1].node = "node-a";
    look = (struct node_look){"node-a", state, scene.pods[1].deletion_ms + after_ms};
    scene.input.memory.nodes = &look;
    scene.input.memory.node_count = 1;
    return forced_after(after_ms);
}

Test(dead_node, its_node_is_read_before_a_pod_is_removed)
{
    scene.pods[1].node = "node-a";
    cr_assert_eq(forced_after(DUE_MS - 1), 0);
    cr_assert_eq(scene_count(&scene, ACTION_LOOK_AT_NODE), 0, "a kubelet has its time");
    cr_assert_eq(forced_after(DUE_MS), 0);
    cr_assert_eq(scene_count(&scene, ACTION_LOOK_AT_NODE), 1);
    cr_assert_lt(scene.plan.requeue_ms, PLAN_NEVER);
    scene.pods[0] = scene.pods[1];
    forced_after(DUE_MS);
    cr_assert_eq(scene_count(&scene, ACTION_LOOK_AT_NODE), 1, "once for all its pods");
}

Test(dead_node, a_slow_kubelet_is_waited_for_and_a_dead_one_is_not)
{
    cr_assert_eq(forced_on_node(NODE_ALIVE, DUE_MS), 0);
    cr_assert_eq(scene_count(&scene, ACTION_LOOK_AT_NODE), 0, "it was read just now");
    cr_assert_gt(scene.plan.requeue_ms, scene.input.now_ms);
    int64_t again_ms = scene.plan.requeue_ms - scene.pods[1].deletion_ms;
    cr_assert_eq(forced_after(again_ms), 0);
    cr_assert_eq(scene_count(&scene, ACTION_LOOK_AT_NODE), 1, "and again");
    cr_assert_eq(forced_on_node(NODE_ALIVE, 24 * 3600 * (int64_t)1000), 0, "however long it takes");
    cr_assert_eq(forced_on_node(NODE_DEAD, DUE_MS), 1);
    look.name = "node-b";
    cr_assert_eq(forced_after(DUE_MS), 0, "another node's death is none of its");
}

Test(dead_node, where_nodes_may_not_be_read_it_takes_longer)
{
    int64_t unseen_ms = GRACE_MS + scene.options.unseen_node_ms;
    cr_assert_eq(forced_on_node(NODE_UNKNOWN, DUE_MS), 0);
    cr_assert_eq(forced_on_node(NODE_UNKNOWN, unseen_ms - 1), 0);
    cr_assert_eq(forced_on_node(NODE_UNKNOWN, unseen_ms), 1);
}

Test(dead_node, what_the_user_says_needs_no_look)
{
    scene.job.run_policy.force_delete_after_seconds = 10;
    cr_assert_eq(forced_on_node(NODE_ALIVE, GRACE_MS + 9999), 0);
    cr_assert_eq(forced_on_node(NODE_ALIVE, GRACE_MS + 10000), 1);
}

Test(dead_node, one_that_ended_needs_no_force)
{
    scene.pods[1].phase = POD_FAILED;
    cr_assert_eq(forced_after(3600000), 0);
}

Test(dead_node, another_framework_is_left_alone_unless_told)
{
    scene.job.framework = FRAMEWORK_TENSORFLOW;
    cr_assert_eq(forced_after(3600000), 0);
    scene.job.run_policy.force_delete_after_seconds = 10;
    cr_assert_eq(forced_after(GRACE_MS + 9999), 0);
    cr_assert_eq(forced_after(GRACE_MS + 10000), 1);
}

Test(dead_node, a_finished_or_suspended_job_is_cleared_as_well)
{
    scene.job.suspend = true;
    cr_assert_eq(forced_after(3600000), 1);
    scene.job.suspend = false;
    scene.job.status.conditions[CONDITION_SUCCEEDED].status = CONDITION_TRUE;
    scene.job.status.completion_ms = scene.input.now_ms;
    cr_assert_eq(forced_after(3600000), 1);
}

/* As the controller hands it to a plan when the clock was set since. */
static size_t forced_after_move(int64_t by_ms, int64_t ms)
{
    struct job_entry *entry = job_entry_new("n/a");
    SCOPED_FREE struct pod_record *pod = pod_record_new(&scene.pods[1]);
    job_entry_add_pod(entry, pod);
    job_entry_clock_set(entry, by_ms, NULL);
    scene.list[1] = job_entry_views(entry, &scene.arena)[0];
    size_t forced = forced_after(by_ms + ms);
    scene.list[1] = &scene.pods[1];
    job_entry_free(entry);
    return forced;
}

Test(dead_node, a_clock_that_is_set_takes_nothing_from_its_time)
{
    int64_t due_ms = GRACE_MS + scene.options.dead_node_ms;
    cr_assert_eq(forced_after_move(3600000, due_ms - 1), 0);
    cr_assert_eq(forced_after_move(3600000, due_ms), 1);
    cr_assert_eq(forced_after_move(-3600000, due_ms - 1), 0);
    cr_assert_eq(forced_after_move(-3600000, due_ms), 1, "nor does it add any");
}

/* Worker 1 of a job of the same name that was deleted. */
static void leave_to_another_job(bool fenced)
{
    scene.pods[1].owner_uid = scene.pods[1].job_uid = "the-job-before";
    scene.pods[1].fenced = fenced;
}

Test(dead_node, what_an_earlier_job_has_left_there_is_removed_as_well)
{
    int64_t due_ms = GRACE_MS + scene.options.dead_node_ms;
    leave_to_another_job(true);
    cr_assert_eq(forced_after(due_ms - 1), 0);
    cr_assert_leq(scene.plan.requeue_ms, scene.pods[1].deletion_ms + due_ms);
    cr_assert_eq(forced_after(due_ms), 1);
    scene.job.framework = FRAMEWORK_PYTORCH;
    cr_assert_eq(forced_after(due_ms), 1, "whatever the new one is");
    scene.pods[1].owner_uid = "";
    cr_assert_eq(forced_after(due_ms), 0, "left on purpose");
    scene.pods[1].owner_uid = "somebody";
    cr_assert_eq(forced_after(due_ms), 0, "somebody else's");
}

Test(dead_node, pods_of_another_framework_go_if_the_new_job_says_so)
{
    leave_to_another_job(false);
    cr_assert_eq(forced_after(3600000), 0, "nothing keeps it from writing");
    scene.job.run_policy.force_delete_after_seconds = 10;
    cr_assert_eq(forced_after(GRACE_MS + 9999), 0);
    cr_assert_eq(forced_after(GRACE_MS + 10000), 1);
}

Test(dead_node, without_any_job_of_the_name)
{
    leave_to_another_job(true);
    scene.pods[0].deletion_ms = scene.pods[1].deletion_ms; /* as if it had no fence */
    scene.pods[0].grace_ms = GRACE_MS;
    scene.job.uid = "";
    int64_t due_ms = scene.pods[1].deletion_ms + GRACE_MS + scene.options.dead_node_ms;
    for (int late = 0; late < 2; late++) {
        scene.input.now_ms = due_ms - 1 + late;
        plan_release(&scene.plan);
        plan_without_job(&scene.input, &scene.plan);
        cr_assert_eq(scene.plan.action_count, late);
        cr_assert_eq(scene.plan.requeue_ms, late ? PLAN_NEVER : due_ms);
    }
    cr_assert_eq(scene.plan.actions[0].type, ACTION_FORCE_DELETE_POD);
    cr_assert_eq(scene.plan.actions[0].pod, &scene.pods[1]);
    cr_assert_not(scene.plan.write_status);
}
