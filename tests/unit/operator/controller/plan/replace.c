/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/operator/controller/plan/scene.h"

SCENE_SUITE(replace)
{
    scene_init_running(&scene, 2);
    scene.input.now_ms += 60000;
}

Test(replace, the_label_goes_before_the_successor_comes)
{
    scene_end_pod(&scene, &scene.pods[1], 137);
    scene_turn(&scene);
    expect_plan("remove_current=1 create_pod=0 delete_pod=0 (a finished pod stays for its log)");
    scene.pods[1].current = false;
    expect_plan("create_pod=1");
    cr_assert_eq(scene.plan.actions[0].index, 1);
}

Test(replace, the_successor_starts_while_its_predecessor_terminates)
{
    scene.pods[1].deletion_ms = scene.input.now_ms;
    expect_turn("disruptions=1");
    scene.pods[1].current = false;
    expect_plan("create_pod=1");
    scene_add_pod(&scene, ROLE_WORKER, 1, 2);
    expect_plan("worker.active=3 (truthful: the old one is still there) Running:True=CrewComplete "
                "Restarting:False=CrewComplete");
}

Test(replace, the_chiefs_successor_waits_for_its_upload)
{
    struct storage_spec bucket = {.name = "bucket", .s3 = {.enabled = true}};
    scene.job.document.storage = &bucket;
    scene.job.document.storage_count = 1;
    scene.job.document.checkpoint.enabled = true;
    scene.job.document.checkpoint.storage = "bucket";
    for (int i = 0; i < 2; i++) {
        scene.pods[i].deletion_ms = scene.input.now_ms;
        scene.pods[i].grace_ms = 30000;
    }
    scene_turn(&scene);
    scene.pods[0].current = scene.pods[1].current = false;
    expect_plan("create_pod=1 (a claim of the bucket by another chief would prevent its last save)");
    cr_assert_eq(scene.plan.actions[0].index, 1);
    cr_assert_leq(scene.plan.requeue_ms, scene.pods[0].deletion_ms + 30000);
    scene.input.now_ms += 30000;
    expect_plan("create_pod=2 (its node may be dead)");
    scene.input.now_ms -= 30000;
    scene.job.document.checkpoint.storage = "runs";
    expect_plan("create_pod=2");
}

Test(replace, a_pod_below_the_promise_is_ended)
{
    scene_end_pod(&scene, &scene.pods[1], 137);
    scene_turn(&scene);
    scene.pods[1].current = false;
    scene_add_pod(&scene, ROLE_WORKER, 1, 1);
    expect_plan("delete_pod=1 remove_current=1 create_pod=0");
}

/* However often a pod fails, what is left of it does not pile up. */
Test(replace, the_newest_finished_pod_is_kept)
{
    scene.job.run_policy.backoff_limit = 100;
    for (int64_t incarnation = 1; incarnation <= 4; incarnation++) {
        scene_end_pod(&scene, &scene.pods[incarnation], 137);
        scene_turn(&scene);
        scene.pods[incarnation].current = false;
        scene_add_pod(&scene, ROLE_WORKER, 1, incarnation + 1);
    }
    expect_plan("delete_pod=3");
    for (size_t i = 0; i < scene.plan.action_count; i++)
        cr_assert_lt(scene.plan.actions[i].pod->incarnation, 4, "the last one that failed stays for its log");
}

/* How long the survivor may take to end once its crew starts over. */
static int64_t grace_of_survivor(enum framework framework, const char *template_text)
{
    SCOPED_JSON *template = NULL;
    if (template_text)
        cr_assert_eq(json_parse(template_text, strlen(template_text), 4096, &template, NULL), 0);
    scene_init_running(&scene, 2);
    scene.job.framework = framework;
    scene.job.roles[ROLE_WORKER].template = template;
    scene_end_pod(&scene, &scene.pods[1], 137);
    expect_turn("job.attempt=2");
    scene_plan(&scene);
    int64_t seconds = INT64_MIN;
    for (size_t i = 0; i < scene.plan.action_count; i++)
        if (scene.plan.actions[i].type == ACTION_DELETE_POD && scene.plan.actions[i].pod == &scene.pods[0])
            seconds = scene.plan.actions[i].grace_seconds;
    scene.job.roles[ROLE_WORKER].template = NULL;
    scene_release(&scene);
    return seconds;
}

Test(replace, survivors_that_ignore_sigterm_are_not_waited_for)
{
    scene_release(&scene);
    cr_expect_eq(grace_of_survivor(FRAMEWORK_JAX, NULL), 5);
    cr_expect_eq(grace_of_survivor(FRAMEWORK_JAX, "{\"spec\":{\"terminationGracePeriodSeconds\":60}}"), -1);
    cr_expect_eq(grace_of_survivor(FRAMEWORK_PYTORCH, NULL), -1);
    scene_init_running(&scene, 2);
}
