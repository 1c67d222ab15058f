/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/unit/operator/controller/plan/scene.h"

SCENE_SUITE(catch_up)
{
    scene_init_running(&scene, 2);
}

static void plan_after_the_wait(void)
{
    expect_plan("behind=1 write_status=0 (the cache may be old)");
    cr_assert_eq(scene.plan.requeue_ms, scene.input.now_ms + scene.options.catch_up_ms);
    scene.input.memory.behind_since_ms = scene.input.now_ms;
    scene.input.now_ms += scene.options.catch_up_ms;
    expect_plan("write_status=1 actions=0 (the status comes first)");
    cr_assert_str_eq(scene.plan.events[0].reason, "StatusBehind");
    scene_accept(&scene);
    scene.input.memory.behind_since_ms = FIELD_UNSET;
}

Test(catch_up, a_status_that_was_set_back_goes_on_from_its_pods)
{
    scene.pods[1].incarnation = 4;
    plan_after_the_wait();
    scene_expect("incarnation=4 attempt=1");
    expect_plan("behind=0 actions=0 (the crew works on) restart_count=0");
}

Test(catch_up, a_report_is_left_to_the_next_plan)
{
    struct progress told = scene_no_progress();
    told.step = 120;
    scene.input.progress = &told;
    scene.input.progress_due = true;
    scene.pods[1].incarnation = 4;
    plan_after_the_wait();
    cr_expect_not(scene.plan.took_progress);
    expect_plan("behind=0 progress.step=120 write_status=1");
    cr_expect(scene.plan.took_progress);
}

Test(catch_up, an_emptied_status_is_filled_again)
{
    scene.job.status = (struct job_status){.start_ms = FIELD_UNSET,
                                           .completion_ms = FIELD_UNSET,
                                           .backoff_until_ms = FIELD_UNSET,
                                           .progress = scene.job.status.progress};
    scene.pods[1].incarnation = 2;
    plan_after_the_wait();
    cr_assert_eq(scene.plan.status.start_ms, scene.input.now_ms);
    expect_plan("state=Running actions=0");
}

Test(catch_up, after_the_end_pods_of_any_incarnation_are_ended)
{
    scene_end_pod(&scene, &scene.pods[0], 70);
    scene_turn(&scene);
    scene.pods[1].incarnation = 4;
    expect_plan("incarnation=1 delete_pod=1");
}
