/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "common/contract/labels.h"
#include "tests/unit/operator/controller/plan/scene.h"

SCENE_SUITE(create)
{
    scene_init(&scene, 3);
}

Test(create, status_first_then_the_service_then_pods)
{
    scene.input.service = NULL;
    expect_turn("actions=0 write_status=1 incarnation=1 attempt=1 worker.pending=0-2");
    expect_plan("create_service=1 create_pod=0 (their names would lead nowhere)");
    scene.input.service = &scene.service;
    expect_plan("create_service=0 create_pod=3");
}

/* One without the job's labels is not in the cache: that it is there shows in the create's answer. */
Test(create, a_service_that_the_cache_does_not_show_holds_the_pods_back_too)
{
    scene.input.service = NULL;
    scene_turn(&scene);
    scene.input.memory.obstacle =
        (struct obstacle){OBSTACLE_NAME_TAKEN, "services digits exists", SCENE_NOW + 4000, "services"};
    expect_turn("actions=0 Scheduled:False=NameTaken");
    scene.input.now_ms += 4000;
    expect_plan("actions=1 create_service=1 (it may have gone)");
}

Test(create, what_is_there_is_promised_no_longer)
{
    scene_turn(&scene);
    scene_add_pod(&scene, ROLE_WORKER, 1, 1);
    expect_plan("create_pod=2 worker.pending=0,2");
}

Test(create, a_quota_is_waited_for_and_named)
{
    scene_turn(&scene);
    scene.input.memory.obstacle = (struct obstacle){OBSTACLE_QUOTA, "pods: used 10, limit 10", SCENE_NOW + 4000, NULL};
    expect_plan("actions=0");
    cr_assert_leq(scene.plan.requeue_ms, SCENE_NOW + 4000);
    scene_expect("Scheduled:False=QuotaExceeded events=1");
    scene_accept(&scene);
    scene.input.now_ms += 4000;
    expect_plan("create_pod=3 events=0 (said once)");
}

Test(create, a_rejected_template_fails_the_job_in_the_servers_words)
{
    scene_turn(&scene);
    scene.input.memory.obstacle =
        (struct obstacle){OBSTACLE_REJECTED, "spec.containers[0].image: Required value", 0, NULL};
    expect_plan("Failed:True=PodRejected");
    cr_assert_str_eq(scene.plan.status.conditions[CONDITION_FAILED].message,
                     "spec.containers[0].image: Required value");
}

/* Its checkpoints are worth weeks; a policy or an upgrade of the cluster may be to blame, and both can be undone. */
Test(create, a_job_that_has_run_is_not_ended_by_a_pod_that_is_rejected)
{
    static const enum obstacle_kind kinds[] = {OBSTACLE_REJECTED, OBSTACLE_TEMPLATE};
    for (size_t i = 0; i < 2; i++) {
        scene_release(&scene);
        scene_init_running(&scene, 3);
        scene_end_pod(&scene, &scene.pods[1], 137);
        scene_turn(&scene);
        scene.pods[1].current = false;
        scene.input.now_ms += 60000;
        scene.input.memory.obstacle =
            (struct obstacle){kinds[i], "spec.containers[0].image: Required value", scene.input.now_ms + 4000, NULL};
        expect_plan("has_run=1 actions=0 (it waits)");
        cr_assert_leq(scene.plan.requeue_ms, scene.input.now_ms + 4000);
        cr_assert_str_eq(scene_reason(&scene, CONDITION_FAILED, CONDITION_TRUE), "");
        cr_assert_str_eq(scene_reason(&scene, CONDITION_SCHEDULED, CONDITION_FALSE), obstacle_reason(kinds[i]));
        cr_assert_str_eq(scene.plan.status.conditions[CONDITION_SCHEDULED].message,
                         "spec.containers[0].image: Required value");
        scene_accept(&scene);
        scene.input.now_ms += 4000;
        expect_plan("create_pod=1 (and tries again)");
    }
}

static void plan_a_rejected_pod(bool expected)
{
    scene.input.memory.obstacle = (struct obstacle){OBSTACLE_REJECTED, "no", SCENE_NOW, NULL};
    scene_plan(&scene);
    cr_expect_eq(scene.plan.has_run, expected);
    cr_expect_str_eq(scene_reason(&scene, CONDITION_FAILED, CONDITION_TRUE), expected ? "" : "PodRejected");
}

Test(create, what_tells_that_a_job_has_run_outlives_the_operator)
{
    scene_turn(&scene);
    struct pod_view *pod = scene_add_pod(&scene, ROLE_WORKER, 1, 1);
    pod->ready = false;
    plan_a_rejected_pod(false); /* pods that are only being started have trained nothing */
    pod->ready = true;
    plan_a_rejected_pod(true);
    pod->ready = false;
    scene.job.status.progress.step = 12;
    plan_a_rejected_pod(true);
    scene.job.status.progress.step = FIELD_UNSET;
    scene.job.status.restart_count = 1;
    plan_a_rejected_pod(true);
    scene.job.status.restart_count = 0;
    scene.job.status.conditions[CONDITION_RUNNING].status = CONDITION_TRUE;
    plan_a_rejected_pod(true);
}

Test(create, a_status_older_than_the_pods_is_not_acted_upon)
{
    scene_turn(&scene);
    scene_add_pod(&scene, ROLE_WORKER, 0, 2);
    expect_plan("actions=0 write_status=0");
}

Test(create, a_job_of_another_manager_or_on_its_way_out_is_left_alone)
{
    scene.job.managed_by = "example.com/other";
    expect_plan("write_status=0");
    scene.job.managed_by = MANAGED_BY_OPERATOR;
    expect_plan("write_status=1");
    struct plan_options named = *scene.input.options;
    named.controller_name = "example.com/other";
    scene.input.options = &named;
    expect_plan("write_status=0");
    scene.job.managed_by = NULL;
    expect_plan("write_status=0 (an operator with a name takes nothing without it)");
    scene.job.managed_by = MANAGED_BY_MULTIKUEUE;
    expect_plan("write_status=0");
    scene.job.managed_by = "example.com/other";
    expect_plan("write_status=1");
    scene.job.deleted_ms = SCENE_NOW;
    expect_plan("write_status=0");
}

Test(create, a_wrong_spec_ends_in_a_sentence)
{
    scene.input.invalid = "training.batchSize: -3 is below 1";
    expect_plan("Failed:True=InvalidSpec");
    cr_assert_str_eq(scene.plan.status.conditions[CONDITION_FAILED].message, "training.batchSize: -3 is below 1");
}

Test(create, leftovers_of_an_earlier_job_are_waited_for)
{
    scene_leave_pod(&scene, "the job before");
    expect_plan("incarnation=0 Scheduled:False=WaitingForPredecessor");
    scene.input.pod_count = 0;
    scene.service.owner_uid = "the job before";
    scene.input.service = &scene.service;
    expect_plan("incarnation=0");
    scene.input.service = NULL;
    expect_plan("incarnation=1");
}

Test(create, a_service_of_another_owner_holds_the_pods_back)
{
    scene_turn(&scene);
    scene.service = (struct service_view){
        .name = "digits", .owner_uid = "rs", .owner_kind = "ReplicaSet", .owner_name = "web", .job_uid = SCENE_UID};
    scene.input.service = &scene.service;
    expect_plan("actions=0 Scheduled:False=NameTaken");
    cr_assert_str_eq(scene.plan.status.conditions[CONDITION_SCHEDULED].message,
                     "services digits exists and belongs to ReplicaSet web: remove it, or give the job another name");
    scene.input.service = NULL;
    expect_plan("actions=1 create_service=1");
}

Test(create, a_service_that_lost_its_owner_is_the_jobs_by_its_label)
{
    scene.service.owner_uid = scene.service.owner_kind = scene.service.owner_name = "";
    scene.service.of_job = false;
    scene.input.service = &scene.service;
    scene_turn(&scene);
    expect_plan("create_pod=3");
    scene.service.job_uid = "another";
    expect_plan("actions=0 Scheduled:False=NameTaken");
}

Test(create, a_spec_full_of_nonsense_is_answered_too)
{
    static const int64_t counts[] = {FIELD_UNSET, -1, INT64_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        scene.job.document.workers = counts[i];
        scene.job.roles[ROLE_PS].count = counts[i];
        scene.input.invalid = "spec.workers.replicas: must be a whole number from 1 to 1000";
        expect_plan("Failed:True=InvalidSpec");
    }
}

Test(create, an_obstacle_is_over_when_nothing_is_left_to_create)
{
    scene_turn(&scene);
    scene.input.memory.obstacle = (struct obstacle){OBSTACLE_OUTAGE, "timed out", SCENE_NOW + 4000, NULL};
    for (int64_t i = 0; i < 3; i++)
        scene_add_pod(&scene, ROLE_WORKER, i, 1);
    scene.input.service = &scene.service;
    expect_plan("Scheduled:True=AllScheduled (the server had created what it did not answer)");
}

/* Its name and incarnation are used up: a successor of the same incarnation could be taken for it. */
Test(create, a_promised_pod_that_came_and_went_is_lost)
{
    scene_turn(&scene);
    struct gone_pod gone = {.role = ROLE_WORKER, .index = 1};
    scene.input.memory.gone = &gone;
    scene.input.memory.gone_count = 1;
    scene.input.memory.gone_incarnation = 1;
    expect_turn("create_pod=0 disruptions=1 incarnation=2");
    expect_plan("create_pod=3 (of an older incarnation than what is promised now)");
}

/* Neither its create nor a look for it was answered. */
Test(create, beside_a_pod_that_may_be_there_no_other_is_made)
{
    scene_turn(&scene);
    struct unsure_pod unsure = {.role = ROLE_WORKER, .index = 1, .incarnation = 1};
    scene.input.memory.unsure = &unsure;
    scene.input.memory.unsure_count = 1;
    scene.job.status.incarnation = 2;
    expect_plan("look_for_pod=1");
    cr_assert_eq(scene.plan.actions[0].index, 1);
    cr_assert_eq(scene.plan.actions[0].incarnation, 1);
    cr_assert_eq(scene_count(&scene, ACTION_CREATE_POD), 2, "the others do not wait for it");
    scene.input.memory.inherited_incarnation = 2;
    expect_plan("look_for_pod=1 create_pod=0 incarnation=2 (nor is another promised)");
    scene.input.memory.obstacle = (struct obstacle){OBSTACLE_OUTAGE, "timed out", SCENE_NOW + 4000, NULL};
    expect_plan("actions=0 (not yet)");
    cr_assert_leq(scene.plan.requeue_ms, SCENE_NOW + 4000);
}

/* It may have been there, and have been removed by force from a node that is cut off, while no operator looked. */
Test(create, what_a_successor_finds_promised_it_promises_under_another_incarnation)
{
    scene_turn(&scene);
    scene_add_pod(&scene, ROLE_WORKER, 1, 1);
    scene.input.service = &scene.service;
    scene.input.memory.inherited_incarnation = 1;
    expect_turn(
        "actions=0 write_status=1 incarnation=2 attempt=1 restart_count=0 (nobody knows of an end) worker.pending=0,2");
    expect_plan("create_pod=2 (once)");
    cr_assert_eq(scene.plan.incarnation, 2);
    cr_assert_eq(scene.plan.status.incarnation, 2);
}

Test(create, what_a_successor_finds_whole_keeps_its_incarnation)
{
    scene_turn(&scene);
    for (int64_t i = 0; i < 3; i++)
        scene_add_pod(&scene, ROLE_WORKER, i, 1);
    scene.input.service = &scene.service;
    scene.input.memory.inherited_incarnation = 1;
    expect_plan("actions=0 incarnation=1");
}

Test(create, a_promise_that_waits_is_made_anew_when_its_wait_is_over)
{
    scene_turn(&scene);
    scene.job.status.backoff_until_ms = SCENE_NOW + 5000;
    scene.input.memory.inherited_incarnation = 1;
    expect_plan("incarnation=1");
    scene.input.now_ms += 5000;
    expect_plan("incarnation=2");
}
