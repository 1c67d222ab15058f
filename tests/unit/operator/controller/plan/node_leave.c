/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/node_leave.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "operator/controller/plan/node_avoidance.h"
#include "tests/unit/json_of.h"
#include "tests/unit/operator/controller/plan/scene.h"

static struct node_trouble trouble;
static const struct node_trouble *list[] = {&trouble};

SCENE_SUITE(node_leave)
{
    scene_init(&scene, 3);
    scene_run(&scene);
    for (size_t i = 0; i < 3; i++)
        scene.pods[i].node = i == 1 ? "node-b" : "node-a";
    trouble = (struct node_trouble){.name = "node-a", .removal_taint = "", .conditions = ""};
    scene.input.troubles = list;
    scene.input.trouble_count = 1;
}

Test(node_leave, pods_of_a_node_that_is_about_to_be_removed_are_ended_and_replaced)
{
    trouble.removal_taint = "ToBeDeletedByClusterAutoscaler";
    expect_plan("delete_pod=2 event=NodeLeft events=2 restart_count=0");
    const struct action *action = &scene.plan.actions[0];
    cr_assert_eq(action->pod, &scene.pods[0]);
    cr_assert_eq(action->grace_seconds, -1, "it has its whole grace period");
    cr_assert_str_eq(scene.plan.events[0].note,
                     "pod digits-worker-0-1 is ended, so that it can save and be replaced: its node node-a is about to "
                     "be removed (taint ToBeDeletedByClusterAutoscaler)");
    cr_assert(scene.plan.events[0].of_action && scene.plan.events[0].action_number == 1);
    scene.pods[0].deletion_ms = scene.pods[2].deletion_ms = scene.input.now_ms;
    scene.pods[0].grace_ms = scene.pods[2].grace_ms = 30000;
    expect_turn("delete_pod=0 disruptions=1 failures=0 worker.pending=0,2");
    cr_assert_eq(scene.plan.avoided_node_count, 1);
    cr_assert_str_eq(scene.plan.avoided_nodes[0], "node-a");
    scene_expect("AvoidingNodes:absent=");
}

Test(node_leave, only_conditions_that_the_job_names_count)
{
    trouble.conditions = "MemoryPressure\nGpuUnhealthy\n";
    expect_plan("actions=0");
    cr_assert_eq(scene.plan.avoided_node_count, 0);
    scene.job.run_policy.avoided_conditions[0] = "Gpu";
    scene.job.run_policy.avoided_condition_count = 1;
    expect_plan("actions=0");
    scene.job.run_policy.avoided_conditions[1] = "GpuUnhealthy";
    scene.job.run_policy.avoided_condition_count = 2;
    expect_plan("delete_pod=2");
    cr_assert(strstr(scene.plan.events[0].note, "its node node-a has the condition GpuUnhealthy"));
}

Test(node_leave, where_kueue_chooses_the_nodes_only_removal_counts)
{
    struct workload_view workload = {.owner_uid = SCENE_UID,
                                     .admitted = true,
                                     .pins_nodes = true,
                                     .queue_name = "research",
                                     .pods_ready_reason = "Started",
                                     .pods_ready = true};
    scene.job.queue_name = "research";
    scene.job.run_policy.avoided_conditions[0] = "GpuUnhealthy";
    scene.job.run_policy.avoided_condition_count = 1;
    scene.input.queue.state = OPTIONAL_READY;
    scene.input.queue.workload = &workload;
    trouble.conditions = "GpuUnhealthy\n";
    expect_plan("delete_pod=0 (the successor would be sent to the same node, and wait)");
    cr_assert_eq(scene.plan.avoided_node_count, 0);
    trouble.removal_taint = "karpenter.sh/disrupted";
    expect_plan("delete_pod=2");
    workload.pins_nodes = false;
    trouble.removal_taint = "";
    expect_plan("delete_pod=2");
}

Test(node_leave, pods_that_end_or_have_no_node_are_left_alone)
{
    trouble.removal_taint = "karpenter.sh/disrupted";
    scene_end_pod(&scene, &scene.pods[0], 0);
    scene.pods[2].node = "";
    expect_plan("delete_pod=0");
}

Test(node_leave, what_nobody_could_replace_stays)
{
    scene.job.framework = FRAMEWORK_PYTORCH;
    scene.job.elastic = (struct elastic_spec){true, 2, 3, 3};
    trouble.removal_taint = "karpenter.sh/disrupted";
    expect_plan("delete_pod=2");
    scene.input.invalid = "spec.field: wrong";
    expect_plan("delete_pod=0 (nothing is created from such a spec)");
    scene.input.invalid = NULL;
    scene_end_pod(&scene, &scene.pods[1], 0);
    expect_plan("delete_pod=0 (training is over for one worker)");
}

Test(node_leave, a_pod_that_its_affinity_did_not_keep_away_stays)
{
    trouble.removal_taint = "karpenter.sh/disrupted";
    scene.pods[0].avoided = "node-c,node-a";
    scene.pods[2].avoided = "node-aa,node";
    expect_plan("delete_pod=1 (else its successors would come and go without end)");
    cr_assert_eq(scene.plan.actions[0].pod, &scene.pods[2]);
}

static void expect_with_template(const char *text, const char *expected)
{
    SCOPED_JSON *template = json_of(text);
    scene.job.roles[ROLE_WORKER].template = template;
    expect_plan(expected);
    scene.job.roles[ROLE_WORKER].template = NULL;
}

Test(node_leave, pods_stay_to_the_end_if_their_template_says_so)
{
    trouble.removal_taint = "karpenter.sh/disrupted";
    expect_with_template("{\"spec\":{\"tolerations\":[{\"operator\":\"Exists\"}]}}", "delete_pod=2");
    expect_with_template("{\"spec\":{\"tolerations\":[{\"key\":\"karpenter.sh/disrupted\",\"operator\":\"Exists\"}]}}",
                         "delete_pod=0");
    cr_assert_eq(scene.plan.avoided_node_count, 0);
    static const char waits[] = "{\"metadata\":{\"annotations\":{\"karpenter.sh/do-not-disrupt\":\"true\"}}}";
    expect_with_template(waits, "delete_pod=0");
    trouble.removal_taint = "ToBeDeletedByClusterAutoscaler";
    expect_with_template(waits, "delete_pod=2");
}

Test(node_leave, nothing_is_done_for_a_job_that_is_over_or_suspended)
{
    trouble.removal_taint = "karpenter.sh/disrupted";
    scene.job.suspend = true;
    scene_turn(&scene);
    expect_plan("delete_pod=3 Suspended:False=Suspending");
    for (size_t i = 0; i < scene.plan.event_count; i++)
        cr_expect_str_neq(scene.plan.events[i].reason, "NodeLeft");
}

Test(node_leave, no_affinity_excludes_more_nodes_than_a_pod_can_hold)
{
    static struct node_trouble troubles[NODES_AVOIDED_MAX + 20];
    static const struct node_trouble *many[NODES_AVOIDED_MAX + 20];
    static char names[NODES_AVOIDED_MAX + 20][16];
    for (size_t i = 0; i < NODES_AVOIDED_MAX + 20; i++) {
        snprintf(names[i], sizeof names[i], "spot-%zu", i);
        troubles[i] =
            (struct node_trouble){.name = names[i], .removal_taint = "karpenter.sh/disrupted", .conditions = ""};
        many[i] = &troubles[i];
    }
    scene.input.troubles = many;
    scene.input.trouble_count = NODES_AVOIDED_MAX + 20;
    scene_plan(&scene);
    cr_assert_eq(scene.plan.avoided_node_count, NODES_AVOIDED_MAX);
}
