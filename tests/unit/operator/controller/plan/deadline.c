/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/unit/operator/controller/plan/scene.h"

SCENE_SUITE(deadline)
{
    scene_init_running(&scene, 1);
}

Test(deadline, leaves_out_the_time_suspended)
{
    scene.job.run_policy.active_deadline_seconds = 100;
    scene.job.status.suspended_ms = 40000;
    scene.input.now_ms = SCENE_NOW + 139999;
    scene_plan(&scene);
    cr_assert_eq(scene.plan.requeue_ms, SCENE_NOW + 140000);
    cr_assert_str_eq(scene_reason(&scene, CONDITION_FAILED, CONDITION_TRUE), "");
    scene.input.now_ms++;
    expect_plan("Failed:True=DeadlineExceeded");
}

Test(deadline, leaves_out_by_how_much_the_clock_was_set)
{
    scene.job.run_policy.active_deadline_seconds = 100;
    scene.input.moved_ms[STATUS_TIME_START] = 3600000;
    scene.input.now_ms = SCENE_NOW + 3600000 + 99999;
    scene_plan(&scene);
    cr_assert_eq(scene.plan.requeue_ms, scene.input.now_ms + 1);
    scene.input.moved_ms[STATUS_TIME_START] = -3600000;
    scene.input.now_ms = SCENE_NOW - 3600000 + 100000;
    expect_plan("Failed:True=DeadlineExceeded");
}

Test(deadline, stands_still_while_suspended)
{
    scene.job.run_policy.active_deadline_seconds = 100;
    scene.job.suspend = true;
    scene.job.status.conditions[CONDITION_SUSPENDED] =
        (struct condition){.status = CONDITION_TRUE, .reason = "Suspended", .message = ""};
    scene.input.pod_count = 0;
    scene.input.now_ms += 1000000;
    expect_plan("Failed:True=");
}
