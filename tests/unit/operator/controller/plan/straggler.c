/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/straggler.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/operator/controller/plan/scene.h"

/* Worker 1 of 3 has been slow for two minutes; the crew has run for an hour. */
SCENE_SUITE(straggler)
{
    scene_init_running(&scene, 3);
    for (size_t i = 0; i < 3; i++)
        scene.pods[i].node = i == 1 ? "node-b" : "node-a";
    scene_turn(&scene);
    scene.input.now_ms += 3600 * 1000;
    scene.job.run_policy.straggler_replacement = (struct straggler_replacement_spec){60, 1};
    scene.job.run_policy.node_avoidance = (struct node_avoidance_spec){FIELD_UNSET, FIELD_UNSET, FIELD_UNSET};
    scene.input.answers = (struct answers_input){.asked_ms = scene.input.now_ms, .since_ms = SCENE_NOW, .found = true};
    scene.input.straggler = (struct straggler_input){
        .reported = true, .role = "worker", .index = 1, .own_ms = 512, .due_ms = 50, .seconds = 120};
}

static void keeps_up(void)
{
    scene.input.straggler = (struct straggler_input){.reported = true, .role = NULL};
}

/* The pod is asked to end, ends, and its successor is ready. */
static void replace(size_t pod, int64_t incarnation)
{
    scene.pods[pod].deletion_ms = scene.input.now_ms;
    scene.pods[pod].grace_ms = 30000;
    keeps_up();
    expect_turn("event=PodDisrupted disruptions=1 failures=0 worker.pending=1 restart_count=1");
    scene_end_pod(&scene, &scene.pods[pod], 161);
    scene.pods[pod].current = false;
    scene_add_pod(&scene, ROLE_WORKER, 1, incarnation)->node = "node-c";
    scene_turn(&scene);
    scene_turn(&scene);
}

Test(straggler, it_is_named_and_left_alone_without_the_field)
{
    scene.job.run_policy.straggler_replacement.after_seconds = FIELD_UNSET;
    expect_turn("Straggling:True=StragglerFound event=StragglerFound events=1 actions=0 state=Running");
    cr_expect_str_eq(scene.job.status.conditions[CONDITION_STRAGGLING].message,
                     "worker 1 takes 10 times as long as expected for its part of a step");
    scene.input.straggler.own_ms = 530;
    expect_turn("Straggling:True=StragglerFound events=0 write_status=0 (about as slow as before)");
    scene.input.straggler.reported = false;
    expect_turn("Straggling:True=StragglerFound write_status=0 (an evaluation)");
    keeps_up();
    expect_turn("Straggling:False=NoStraggler events=0 write_status=1");
    expect_turn("write_status=0");
    cr_expect_eq(scene.job.status.straggler_replacement_count, 0);
}

Test(straggler, the_decision_is_written_before_the_pod_is_deleted)
{
    expect_plan("actions=0 write_status=1");
    expect_plan("actions=0 (the write has failed, or the cache is old)");
    scene_accept(&scene);
    cr_assert_eq(scene.job.status.straggler_replacement_count, 1);
    cr_expect_str_eq(scene.job.status.straggler_replacements[0].pod, scene.pods[1].name);
    cr_assert_eq(scene.plan.avoided_node_count, 1);
    cr_expect_str_eq(scene.plan.avoided_nodes[0], "node-b");
    cr_expect(scene.job.status.node_failures[0].sure);
    bool told = false;
    for (size_t i = 0; i < scene.plan.event_count; i++)
        told |=
            strcmp(scene.plan.events[i].reason, "StragglerReplaced") == 0 &&
            strstr(scene.plan.events[i].note, "pod digits-worker-1-1 is ended, so that it can save and be replaced: "
                                              "worker 1 takes 10 times as long as expected for its part of a step, "
                                              "for 120 s");
    cr_expect(told);
    keeps_up(); /* what is written is done */
    expect_turn("delete_pod=1");
    cr_expect_eq(scene.plan.actions[0].pod, &scene.pods[1]);
    cr_expect_eq(scene.plan.actions[0].grace_seconds, -1);
    expect_turn("delete_pod=1 (the request has failed)");
    scene.pods[1].deletion_ms = scene.input.now_ms;
    expect_turn("delete_pod=0");
    cr_expect_eq(scene.job.status.node_failure_count, 1, "the end of the pod does not blame the node again");
}

Test(straggler, its_successor_is_judged_by_its_own_time)
{
    scene_turn(&scene);
    scene_turn(&scene);
    scene.job.run_policy.straggler_replacement.max_per_hour = 5;
    replace(1, 2);
    cr_assert_eq(scene.job.status.straggler_replacement_count, 1);
    scene.input.straggler = (struct straggler_input){
        .reported = true, .role = "worker", .index = 1, .own_ms = 512, .due_ms = 50, .seconds = 120};
    expect_turn("delete_pod=0 (this was said of its predecessor)");
    scene.input.now_ms += 59000;
    scene.input.answers.asked_ms = scene.input.now_ms;
    expect_turn("delete_pod=0");
    scene.input.now_ms += 1000;
    expect_turn("delete_pod=0 (the answer is older)");
    scene.input.answers.asked_ms = scene.input.now_ms;
    scene_turn(&scene);
    cr_expect_eq(scene.job.status.straggler_replacement_count, 2);
    expect_turn("delete_pod=1");
}

Test(straggler, no_more_than_so_many_within_an_hour)
{
    scene_turn(&scene);
    scene_turn(&scene);
    replace(1, 2);
    scene.input.straggler = (struct straggler_input){
        .reported = true, .role = "worker", .index = 1, .own_ms = 512, .due_ms = 50, .seconds = 3000};
    scene.input.now_ms += 3599 * 1000;
    scene.input.answers.asked_ms = scene.input.now_ms;
    scene_turn(&scene);
    cr_expect_eq(scene.job.status.straggler_replacement_count, 1);
    expect_turn("delete_pod=0");
    scene.input.now_ms += 1000;
    scene_turn(&scene);
    cr_expect_eq(scene.job.status.straggler_replacement_count, 1, "the old one is dropped");
    expect_turn("delete_pod=1");
}

Test(straggler, an_entry_without_a_pod_is_dropped)
{
    static struct straggler_replacement entries[] = {{.pod = NULL}};
    entries[0].at_ms = scene.input.now_ms;
    keeps_up();
    scene.job.status.straggler_replacements = entries;
    scene.job.status.straggler_replacement_count = 1;
    expect_plan("delete_pod=0");
    cr_expect_eq(scene.plan.status.straggler_replacement_count, 0);
}

static void expect_no_decision(const char *why)
{
    scene_turn(&scene);
    cr_assert_eq(scene.job.status.straggler_replacement_count, 0, "%s", why);
}

Test(straggler, it_waits_for_the_time_and_for_the_others)
{
    scene.input.straggler.seconds = 59;
    expect_no_decision("not long enough");
    scene.input.straggler.seconds = 60;
    scene.input.answers.asked_ms = FIELD_UNSET;
    expect_no_decision("no answer of this chief");
    scene.input.answers.asked_ms = scene.input.now_ms;
    scene.pods[2].ready = false;
    expect_no_decision("another one is missing");
    scene.pods[2].ready = true;
    scene.input.invalid = "spec.field: wrong";
    expect_no_decision("nothing is created from such a spec");
    scene.input.invalid = NULL;
    scene.input.straggler.index = 3;
    expect_no_decision("no such worker");
    scene.input.straggler.index = 1;
    scene.input.straggler.role = "pilot";
    expect_no_decision("no such role");
    scene.input.straggler.role = "worker";
    scene_turn(&scene);
    scene.input.now_ms += 70000;
    scene.input.answers.asked_ms = scene.input.now_ms;
    scene_turn(&scene);
    cr_assert_eq(scene.job.status.straggler_replacement_count, 1);
}

Test(straggler, where_kueue_chooses_the_nodes_it_stays)
{
    struct workload_view workload = {.owner_uid = SCENE_UID,
                                     .admitted = true,
                                     .pins_nodes = true,
                                     .queue_name = "research",
                                     .pods_ready_reason = "Started",
                                     .pods_ready = true};
    scene.job.queue_name = "research";
    scene.input.queue.state = OPTIONAL_READY;
    scene.input.queue.workload = &workload;
    expect_no_decision("its successor would be sent to the same node");
}

Test(straggler, nodes_that_are_never_avoided_are_not_blamed)
{
    scene.job.run_policy.node_avoidance.failures = 0;
    scene_turn(&scene);
    cr_expect_eq(scene.job.status.straggler_replacement_count, 1);
    cr_expect_eq(scene.job.status.node_failure_count, 0);
}
