/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/operator/controller/plan/scene.h"

SCENE_SUITE(completion)
{
    scene_init_running(&scene, 2);
}

Test(completion, the_chief_decides)
{
    scene_end_pod(&scene, &scene.pods[1], 0);
    expect_plan("Succeeded:True= Running:True=CrewComplete (a worker that is done is not missing)");
    scene_end_pod(&scene, &scene.pods[0], 0);
    expect_plan("Succeeded:True=ChiefSucceeded Running:False=Succeeded worker.succeeded=2");
}

Test(completion, waits_a_moment_for_the_others_failure_line)
{
    scene_end_pod(&scene, &scene.pods[0], 0);
    expect_plan("Succeeded:True=");
    cr_assert_eq(scene.plan.requeue_ms, SCENE_NOW + 1000, "that of the counts, before the end of the wait");
    scene.input.now_ms += 2000;
    expect_plan("Succeeded:True=ChiefSucceeded");
}

Test(completion, success_wins_over_what_happens_at_the_same_time)
{
    scene_end_pod(&scene, &scene.pods[0], 0);
    scene_end_pod(&scene, &scene.pods[1], 70);
    expect_plan("Succeeded:True=ChiefSucceeded");
}

Test(completion, a_chief_of_its_own_comes_before_worker_0)
{
    scene_release(&scene);
    scene_init_running(&scene, 1);
    scene.job.roles[ROLE_CHIEF].count = 1;
    struct pod_view *chief = scene_add_pod(&scene, ROLE_CHIEF, 0, 1);
    scene_end_pod(&scene, &scene.pods[0], 0);
    expect_plan("Succeeded:True=");
    scene_end_pod(&scene, chief, 0);
    expect_plan("Succeeded:True=ChiefSucceeded");
}

static void expect_to_wait_for_all_workers(enum framework framework)
{
    scene_renew();
    scene.job.framework = framework;
    scene_end_pod(&scene, &scene.pods[0], 0);
    scene.input.now_ms += 60000;
    expect_plan("Succeeded:True=");
    scene_end_pod(&scene, &scene.pods[1], 0);
    expect_plan("Succeeded:True=WorkersSucceeded");
}

Test(completion, pytorch_and_jax_wait_for_all_workers)
{
    expect_to_wait_for_all_workers(FRAMEWORK_PYTORCH);
    expect_to_wait_for_all_workers(FRAMEWORK_JAX);
}

Test(completion, a_nodes_clock_that_is_ahead_does_not_delay_the_end)
{
    scene_end_pod(&scene, &scene.pods[0], 0);
    scene.pods[0].finished_ms += 300000;
    expect_plan("Succeeded:True=ChiefSucceeded");
}

Test(completion, a_finished_pod_counts_after_it_was_removed)
{
    scene.job.framework = FRAMEWORK_PYTORCH;
    scene_end_pod(&scene, &scene.pods[0], 0);
    scene.input.now_ms += 60000;
    scene_turn(&scene);
    scene.list[0] = &scene.pods[1];
    scene.input.pod_count = 1;
    expect_plan("attempt=1 Succeeded:True= (worker 1 saves)");
    scene_end_pod(&scene, &scene.pods[1], 0);
    expect_plan("Succeeded:True=WorkersSucceeded");
}

static void send_away_chief(enum framework framework)
{
    scene_init_running(&scene, 1);
    scene.job.framework = framework;
    scene_end_pod(&scene, &scene.pods[0], 0);
    scene.pods[0].deletion_ms = scene.pods[0].finished_ms - 3000;
    scene.pods[0].grace_ms = 30000;
    scene.input.now_ms += 5000;
    scene_plan(&scene);
}

/* A script that saves and exits with 0 on SIGTERM is not done because its node is drained. */
Test(completion, a_foreign_pod_that_is_asked_to_end_and_exits_0_is_not_done)
{
    for (int framework = FRAMEWORK_TENSORFLOW; framework <= FRAMEWORK_JAX; framework++) {
        scene_release(&scene);
        send_away_chief((enum framework)framework);
        cr_assert_str_eq(scene_reason(&scene, CONDITION_SUCCEEDED, CONDITION_TRUE), "", "%d", framework);
        cr_assert_eq(scene.plan.status.restarts.disruptions, 1);
        cr_assert(strstr(scene.plan.status.conditions[CONDITION_RESTARTING].message,
                         "was asked to end, and exited with code 0"));
    }
}

Test(completion, our_own_worker_exits_0_only_when_it_is_done)
{
    scene_release(&scene);
    send_away_chief(FRAMEWORK_COXSWAIN);
    cr_assert_str_eq(scene_reason(&scene, CONDITION_SUCCEEDED, CONDITION_TRUE), "ChiefSucceeded");
}
