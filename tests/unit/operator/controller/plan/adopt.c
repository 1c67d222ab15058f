/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/operator/controller/plan/scene.h"

SCENE_SUITE(adopt)
{
    scene_init_running(&scene, 3);
    scene.input.now_ms += 60000;
}

/* As it is left when somebody takes its owner reference away. */
static void orphan(struct pod_view *pod)
{
    pod->owner_uid = "";
    pod->adoptable = true;
}

/* With all labels of worker 0, and another name. */
static struct pod_view *copy_of_chief(const char *owner_uid)
{
    struct pod_view *copy = scene_add_pod(&scene, ROLE_WORKER, 0, 1);
    copy->name = "digits-copy";
    copy->uid = "uid-z"; /* the newest of an incarnation is the one with the greatest */
    copy->owner_uid = owner_uid;
    copy->member = false;
    return copy;
}

static const char *event_reason(size_t i)
{
    return i < scene.plan.event_count ? scene.plan.events[i].reason : "";
}

Test(adopt, a_pod_that_lost_its_owner_is_adopted_and_not_judged)
{
    orphan(&scene.pods[1]);
    expect_plan("actions=1");
    cr_assert_eq(scene.plan.actions[0].type, ACTION_ADOPT_POD);
    cr_assert_eq(scene.plan.actions[0].pod, &scene.pods[1]);
    scene_expect("disruptions=0 events=0");
}

Test(adopt, after_the_end_too)
{
    scene.job.status.conditions[CONDITION_FAILED].status = CONDITION_TRUE;
    scene.job.status.completion_ms = scene.input.now_ms;
    orphan(&scene.pods[1]);
    expect_plan("adopt_pod=1");
    scene.pods[1].owner_uid = SCENE_UID;
    expect_plan("delete_pod=3 (cleanPodPolicy is for it as well)");
}

Test(adopt, what_no_operator_made_is_left_alone_and_told_of_once)
{
    copy_of_chief("");
    expect_plan("actions=0 events=1");
    cr_assert(scene.plan.events[0].of_action, "no status needs to be written for it");
    cr_assert(plan_has_work(&scene.plan));
    cr_assert_str_eq(event_reason(0), "PodNotOurs");
    cr_assert(strstr(scene.plan.events[0].note, "digits-copy"), "%s", scene.plan.events[0].note);
    scene.input.memory.foreign_reported = scene.plan.foreign;
    expect_plan("events=0");
}

Test(adopt, an_incarnation_that_was_never_given_is_not_adopted)
{
    struct pod_view *pod = scene_add_pod(&scene, ROLE_WORKER, 1, 7);
    orphan(pod);
    expect_plan("actions=0 behind=0 (labels do not tell that the status is old)");
    cr_assert_str_eq(event_reason(0), "PodNotOurs");
    cr_assert(strstr(scene.plan.events[0].note, "a newer incarnation or attempt than the job"), "%s",
              scene.plan.events[0].note);
}

Test(adopt, what_the_server_refuses_is_left_alone_and_the_job_goes_on)
{
    char uid[] = "uid-1", words[] = "denied by a webhook";
    orphan(&scene.pods[1]);
    scene.input.now_ms += 60000;
    struct refused_pod refused = {.uid = uid, .words = words, .retry_ms = scene.input.now_ms + 5000};
    scene.input.memory.refused = &refused;
    scene.input.memory.refused_count = 1;
    expect_plan("adopt_pod=0");
    cr_assert_str_eq(event_reason(0), "PodNotOurs");
    cr_assert(strstr(scene.plan.events[0].note, "(denied by a webhook)"), "%s", scene.plan.events[0].note);
    cr_assert_eq(scene.plan.status.restart_count, 1, "its place is judged");
    cr_assert_leq(scene.plan.requeue_ms, refused.retry_ms);
    scene.input.memory.foreign_reported = scene.plan.foreign;
    scene.input.now_ms = refused.retry_ms;
    expect_plan("adopt_pod=1 (it may be allowed by now) restart_count=1 (the job does not wait for that)");
    cr_assert_eq(scene.plan.foreign, 1, "nor is it told again");
}

Test(adopt, a_plan_that_does_not_look_forgets_nothing)
{
    scene.input.memory.foreign_reported = 2;
    scene.input.memory.queue_change_reported = true;
    scene.job.deleted_ms = scene.input.now_ms;
    scene_plan(&scene);
    cr_assert_eq(scene.plan.foreign, 2);
    cr_assert(scene.plan.queue_change_waits);
}

Test(adopt, a_pod_of_another_owner_wins_over_nobody)
{
    struct pod_view *copy = copy_of_chief("a ReplicaSet");
    scene_end_pod(&scene, copy, 70);
    expect_plan("actions=0 (it is never touched) Failed:True= (nor judged) worker.active=3 (nor counted)");
    cr_assert_str_eq(event_reason(0), "PodNotOurs");
    scene.job.suspend = true;
    scene_turn(&scene);
    expect_plan("delete_pod=3 (nor sent away)");
}

/* kubectl get -o yaml, another name, kubectl create: the owner is copied too. */
Test(adopt, a_copy_that_has_the_owner_too_holds_no_place)
{
    struct pod_view *copy = copy_of_chief(SCENE_UID);
    copy->incarnation = copy->attempt = 9;
    expect_plan("behind=0 (its incarnation was copied or invented) delete_pod=1 (what a controller has and does not "
                "need) remove_current=1 (the Service must not publish it)");
    for (size_t i = 0; i < scene.plan.action_count; i++)
        cr_assert_eq(scene.plan.actions[i].pod, copy);
    cr_assert_str_eq(event_reason(0), "PodUnknown");
    cr_assert_eq(scene.plan.status.restart_count, 0);
}
