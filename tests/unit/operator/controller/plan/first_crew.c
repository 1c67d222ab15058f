/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/first_crew.h"

#include <criterion/criterion.h>

#include "tests/unit/operator/controller/plan/scene.h"

SCENE_SUITE(first_crew)
{
    scene_init(&scene, 2);
    scene.options.unrecorded_crews = true;
    scene.input.memory.born_ms = SCENE_NOW - 5000;
}

static void begin(void)
{
    scene_plan(&scene);
    scene.input.memory.counts_since_ms = scene.input.now_ms;
    for (int64_t i = 0; i < 2; i++) {
        struct pod_view *pod = scene_add_pod(&scene, ROLE_WORKER, i, FIRST_INCARNATION);
        pod->attempt = FIRST_ATTEMPT;
        pod->ready = false;
        pod->phase = POD_PENDING;
    }
}

Test(first_crew, its_pods_wait_for_its_service_and_no_status)
{
    scene.input.service = NULL;
    expect_plan("begun=1 write_status=0 actions=1 create_service=1");
    scene.input.service = &scene.service;
    expect_plan("begun=1 create_pod=2");
    cr_assert_eq(scene.plan.attempt, 1);
    cr_assert_eq(scene.plan.incarnation, 1);
    cr_assert_not(scene.plan.write_status);
    cr_assert_eq(scene.plan.requeue_ms, SCENE_NOW + scene.options.count_write_ms, "it is told before long");
}

Test(first_crew, one_status_tells_of_the_start_and_of_what_came_of_it)
{
    begin();
    scene.input.now_ms += scene.options.count_write_ms;
    expect_plan("actions=0 (all is there) write_status=1");
    scene_expect("only_informs=1 (nothing waits for it) attempt=1 incarnation=1 workers=2");
    cr_assert_eq(scene.plan.status.start_ms, SCENE_NOW - 5000, "deadlines count from when it was taken up");
    scene_expect("worker.pending=none (what is there is promised no longer) event=Started");
    scene_accept(&scene);
    expect_plan("begun=0 actions=0");
}

Test(first_crew, that_it_runs_is_told_at_once)
{
    begin();
    for (size_t i = 0; i < 2; i++) {
        scene.pods[i].phase = POD_RUNNING;
        scene.pods[i].ready = true;
    }
    expect_plan("write_status=1 state=Running");
}

Test(first_crew, what_befalls_it_before_it_is_told_counts)
{
    begin();
    scene_end_pod(&scene, &scene.pods[1], 137);
    expect_plan("write_status=1");
    scene_expect(
        "only_informs=0 (a successor waits for its promise) failures=1 incarnation=2 create_pod=0 (the promise "
        "comes first again)");
}

Test(first_crew, a_pod_that_vanishes_before_it_is_told_does_not_come_again)
{
    begin();
    struct gone_pod gone = {.role = ROLE_WORKER, .index = 1};
    scene.input.pod_count = 1;
    scene.input.memory.gone = &gone;
    scene.input.memory.gone_count = 1;
    scene.input.memory.gone_incarnation = 1;
    expect_plan("create_pod=0 disruptions=1 incarnation=2");
}

Test(first_crew, a_job_that_was_there_before_is_promised_first)
{
    scene.input.memory.born_ms = FIELD_UNSET;
    expect_plan("actions=0 write_status=1 worker.pending=0-1");
    cr_assert_eq(scene.plan.status.incarnation, FIRST_INCARNATION + 1,
                 "one of incarnation 1 may live where nobody sees it");
    cr_assert_eq(scene.plan.status.restart_count, 0);
}

/* Its operator was killed before it told of its crew, which was removed by force; the job was suspended and resumed. */
Test(first_crew, a_resumed_jobs_crew_has_another_incarnation_than_an_unseen_one)
{
    scene.input.memory.born_ms = FIELD_UNSET;
    scene.job.suspend = true;
    scene_turn(&scene);
    scene.job.suspend = false;
    for (int turn = 0; turn < 3 && scene.job.status.attempt == 0; turn++)
        scene_turn(&scene);
    cr_assert_eq(scene.job.status.attempt, FIRST_ATTEMPT);
    cr_assert_eq(scene.job.status.incarnation, FIRST_INCARNATION + 1);
}

Test(first_crew, where_nobody_begins_any_untold_has_the_first_incarnation)
{
    scene.input.memory.born_ms = FIELD_UNSET;
    scene.options.unrecorded_crews = false;
    scene_plan(&scene);
    cr_assert_eq(scene.plan.status.incarnation, FIRST_INCARNATION);
    scene.options.unrecorded_crews = true;
    scene.job.run_policy.gang.scheduler = GANG_VOLCANO;
    scene_plan(&scene);
    cr_assert_eq(scene.plan.status.incarnation, FIRST_INCARNATION, "its pods never come unrecorded");
}

/* Where its operator was killed after the first of two pods. */
Test(first_crew, a_killed_operators_crew_is_reported_and_completed)
{
    begin();
    scene.input.pod_count = 1;
    scene.input.memory.born_ms = FIELD_UNSET;
    scene.pods[0].created_ms = scene.input.now_ms - 30000;
    expect_plan("actions=0 (the status first: an old cache is found out by it)");
    cr_assert_eq(scene.plan.status.start_ms, SCENE_NOW - 30000, "deadlines count the time without an operator");
    cr_assert(scene.plan.write_status);
    cr_assert_eq(scene.plan.status.attempt, FIRST_ATTEMPT);
    cr_assert_eq(scene.plan.status.incarnation, FIRST_INCARNATION + 1, "the other may live where nobody sees it");
    cr_assert_str_eq(scene.plan.status.replicas[ROLE_WORKER].pending, "1");
    scene_accept(&scene);
    expect_plan("create_pod=1");
    cr_assert_eq(scene.plan.incarnation, FIRST_INCARNATION + 1);
    cr_assert_eq(scene.plan.status.restart_count, 0);
}

Test(first_crew, a_create_of_an_operator_that_was_killed_comes_too_late)
{
    begin();
    scene.input.pod_count = 1;
    scene.input.memory.born_ms = FIELD_UNSET;
    scene_turn(&scene);
    scene.input.pod_count = 2;
    expect_plan("delete_pod=1 create_pod=0 (its successor waits until it is not current any more)");
    scene.pods[1].current = false;
    expect_plan("create_pod=1 restart_count=0");
}

Test(first_crew, that_is_all_there_when_its_operator_was_killed_is_told_as_it_is)
{
    begin();
    scene.input.memory.born_ms = FIELD_UNSET;
    expect_plan("write_status=1");
    cr_assert_eq(scene.plan.status.incarnation, FIRST_INCARNATION);
    cr_assert_null(scene.plan.status.replicas[ROLE_WORKER].pending);
}

Test(first_crew, a_killed_operators_crew_started_with_its_oldest_pod)
{
    begin();
    scene.input.memory.born_ms = FIELD_UNSET;
    scene.pods[0].created_ms = SCENE_NOW - 20000;
    scene.pods[1].created_ms = SCENE_NOW - 30000;
    scene_plan(&scene);
    cr_assert_eq(scene.plan.status.start_ms, SCENE_NOW - 30000);
    scene.pods[0].created_ms = scene.pods[1].created_ms = SCENE_NOW + 30000;
    scene_plan(&scene);
    cr_assert_eq(scene.plan.status.start_ms, SCENE_NOW, "not ahead of this clock");
}

Test(first_crew, a_pod_that_appears_after_the_job_was_suspended_is_ended)
{
    begin();
    scene.input.memory.born_ms = FIELD_UNSET;
    scene.job.suspend = true;
    scene.job.status.conditions[CONDITION_SUSPENDED] =
        (struct condition){.status = CONDITION_TRUE, .reason = "Suspended", .message = ""};
    scene_plan(&scene);
    cr_assert_eq(scene.plan.status.conditions[CONDITION_SUSPENDED].status, CONDITION_FALSE, "a pod lives");
    scene_accept(&scene);
    expect_plan("delete_pod=2");
}

Test(first_crew, that_is_suspended_before_it_is_told_goes_on_purpose)
{
    begin();
    scene.job.suspend = true;
    expect_turn("actions=0 attempt=1");
    scene_turn(&scene);
    expect_plan("delete_pod=2 restart_count=0");
}

static void suspend(void)
{
    scene.job.suspend = true;
}
static void make_elastic(void)
{
    scene.job.elastic.enabled = true;
}
static void queue(void)
{
    scene.job.queue_name = "queue";
}
static void gang(void)
{
    scene.job.run_policy.gang.scheduler = GANG_VOLCANO;
}
static void encrypt(void)
{
    scene.job.document.encryption = ENCRYPTION_TLS;
}
static void follow(void)
{
    scene_leave_pod(&scene, "the job before");
}
static void write_status(void)
{
    scene.job.status.conditions[CONDITION_SUSPENDED].status = CONDITION_FALSE;
    scene.job.status.conditions[CONDITION_SUSPENDED].reason = "Resumed";
}

Test(first_crew, a_job_that_waits_or_has_a_past_is_promised_first)
{
    static void (*const changes[])(void) = {suspend, make_elastic, queue, gang, encrypt, follow, write_status};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        scene_renew();
        changes[i]();
        scene_plan(&scene);
        cr_assert_not(scene.plan.begun, "change %zu", i);
        cr_assert_eq(scene_count(&scene, ACTION_CREATE_POD), 0, "change %zu", i);
    }
}

/* A field of its template that pods do not have still ends the job, and does not become one that it has run with. */
Test(first_crew, promised_again_and_again_is_still_the_first)
{
    scene.input.memory.born_ms = FIELD_UNSET;
    for (int successor = 0; successor < 3; successor++) {
        scene_turn(&scene);
        scene.input.memory.inherited_incarnation = scene.job.status.incarnation;
    }
    scene_plan(&scene);
    cr_assert_eq(scene.plan.incarnation, FIRST_INCARNATION + 3);
    cr_assert(scene.plan.first_pods);
    struct pod_view *pod = scene_add_pod(&scene, ROLE_WORKER, 0, scene.plan.incarnation);
    expect_plan("first_pods=0");
    scene.input.now_ms += 60000;
    scene.input.memory.counts_since_ms = SCENE_NOW;
    expect_turn("write_status=1");
    pod->owner_uid = pod->job_uid = "another";
    expect_plan("first_pods=0 (one was seen, whatever became of it)");
}
