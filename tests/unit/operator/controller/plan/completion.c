/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/operator/controller/plan/scene.h"

Test(completion, the_chief_decides)
{
    struct scene scene;
    scene_init_running(&scene, 2);
    scene_end_pod(&scene, &scene.pods[1], 0);
    scene_plan(&scene);
    cr_assert_str_eq(scene_reason(&scene, CONDITION_SUCCEEDED, CONDITION_TRUE), "");
    cr_assert_str_eq(scene_reason(&scene, CONDITION_RUNNING, CONDITION_TRUE), "CrewComplete",
                     "a worker that is done is not missing");
    scene_end_pod(&scene, &scene.pods[0], 0);
    scene_plan(&scene);
    cr_assert_str_eq(scene_reason(&scene, CONDITION_SUCCEEDED, CONDITION_TRUE), "ChiefSucceeded");
    cr_assert_str_eq(scene_reason(&scene, CONDITION_RUNNING, CONDITION_FALSE), "Succeeded");
    cr_assert_eq(scene.plan.status.replicas[ROLE_WORKER].succeeded, 2);
    scene_release(&scene);
}

Test(completion, waits_a_moment_for_the_others_last_words)
{
    struct scene scene;
    scene_init_running(&scene, 2);
    scene_end_pod(&scene, &scene.pods[0], 0);
    scene_plan(&scene);
    cr_assert_str_eq(scene_reason(&scene, CONDITION_SUCCEEDED, CONDITION_TRUE), "");
    cr_assert_eq(scene.plan.requeue_ms, SCENE_NOW + 1000, "that of the counts, before the end of the wait");
    scene.input.now_ms += 2000;
    scene_plan(&scene);
    cr_assert_str_eq(scene_reason(&scene, CONDITION_SUCCEEDED, CONDITION_TRUE), "ChiefSucceeded");
    scene_release(&scene);
}

Test(completion, success_wins_over_what_happens_at_the_same_time)
{
    struct scene scene;
    scene_init_running(&scene, 2);
    scene_end_pod(&scene, &scene.pods[0], 0);
    scene_end_pod(&scene, &scene.pods[1], 70);
    scene_plan(&scene);
    cr_assert_str_eq(scene_reason(&scene, CONDITION_SUCCEEDED, CONDITION_TRUE), "ChiefSucceeded");
    scene_release(&scene);
}

Test(completion, a_chief_of_its_own_comes_before_worker_0)
{
    struct scene scene;
    scene_init_running(&scene, 1);
    scene.job.roles[ROLE_CHIEF].count = 1;
    struct pod_view *chief = scene_add_pod(&scene, ROLE_CHIEF, 0, 1);
    scene_end_pod(&scene, &scene.pods[0], 0);
    scene_plan(&scene);
    cr_assert_str_eq(scene_reason(&scene, CONDITION_SUCCEEDED, CONDITION_TRUE), "");
    scene_end_pod(&scene, chief, 0);
    scene_plan(&scene);
    cr_assert_str_eq(scene_reason(&scene, CONDITION_SUCCEEDED, CONDITION_TRUE), "ChiefSucceeded");
    scene_release(&scene);
}

static void expect_to_wait_for_all_workers(enum framework framework)
{
    struct scene scene;
    scene_init_running(&scene, 2);
    scene.job.framework = framework;
    scene_end_pod(&scene, &scene.pods[0], 0);
    scene.input.now_ms += 60000;
    scene_plan(&scene);
    cr_assert_str_eq(scene_reason(&scene, CONDITION_SUCCEEDED, CONDITION_TRUE), "");
    scene_end_pod(&scene, &scene.pods[1], 0);
    scene_plan(&scene);
    cr_assert_str_eq(scene_reason(&scene, CONDITION_SUCCEEDED, CONDITION_TRUE), "WorkersSucceeded");
    scene_release(&scene);
}

Test(completion, pytorch_and_jax_wait_for_all_workers)
{
    expect_to_wait_for_all_workers(FRAMEWORK_PYTORCH);
    expect_to_wait_for_all_workers(FRAMEWORK_JAX);
}

Test(completion, a_nodes_clock_that_is_ahead_does_not_delay_the_end)
{
    struct scene scene;
    scene_init_running(&scene, 2);
    scene_end_pod(&scene, &scene.pods[0], 0);
    scene.pods[0].finished_ms += 300000;
    scene_plan(&scene);
    cr_assert_str_eq(scene_reason(&scene, CONDITION_SUCCEEDED, CONDITION_TRUE), "ChiefSucceeded");
    scene_release(&scene);
}

Test(completion, who_is_done_counts_when_its_pod_is_removed)
{
    struct scene scene;
    scene_init_running(&scene, 2);
    scene.job.framework = FRAMEWORK_PYTORCH;
    scene_end_pod(&scene, &scene.pods[0], 0);
    scene.input.now_ms += 60000;
    scene_plan(&scene);
    scene_accept(&scene);
    scene.list[0] = &scene.pods[1];
    scene.input.pod_count = 1;
    scene_plan(&scene);
    cr_assert_eq(scene.plan.status.attempt, 1);
    cr_assert_str_eq(scene_reason(&scene, CONDITION_SUCCEEDED, CONDITION_TRUE), "", "worker 1 saves");
    scene_end_pod(&scene, &scene.pods[1], 0);
    scene_plan(&scene);
    cr_assert_str_eq(scene_reason(&scene, CONDITION_SUCCEEDED, CONDITION_TRUE), "WorkersSucceeded");
    scene_release(&scene);
}

static void send_away_chief(struct scene *scene, enum framework framework)
{
    scene_init_running(scene, 1);
    scene->job.framework = framework;
    scene_end_pod(scene, &scene->pods[0], 0);
    scene->pods[0].deletion_ms = scene->pods[0].finished_ms - 3000;
    scene->pods[0].grace_ms = 30000;
    scene->input.now_ms += 5000;
    scene_plan(scene);
}

/* A script that saves and exits with 0 on SIGTERM is not done because its node is drained. */
Test(completion, who_of_a_foreign_image_is_told_to_go_and_exits_0_is_not_done)
{
    for (int framework = FRAMEWORK_TENSORFLOW; framework <= FRAMEWORK_JAX; framework++) {
        struct scene scene;
        send_away_chief(&scene, (enum framework)framework);
        cr_assert_str_eq(scene_reason(&scene, CONDITION_SUCCEEDED, CONDITION_TRUE), "", "%d", framework);
        cr_assert_eq(scene.plan.status.restarts.disruptions, 1);
        cr_assert(strstr(scene.plan.status.conditions[CONDITION_RESTARTING].message,
                         "was asked to end, and exited with code 0"));
        scene_release(&scene);
    }
}

Test(completion, our_own_worker_exits_0_only_when_it_is_done)
{
    struct scene scene;
    send_away_chief(&scene, FRAMEWORK_COXSWAIN);
    cr_assert_str_eq(scene_reason(&scene, CONDITION_SUCCEEDED, CONDITION_TRUE), "ChiefSucceeded");
    scene_release(&scene);
}
