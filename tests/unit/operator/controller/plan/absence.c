/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/unit/operator/controller/plan/scene.h"

#define OFF_MS 3600000

/* Both pods end; the operator is not there, and begins an hour later. */
SCENE_SUITE(absence)
{
    scene_init_running(&scene, 2);
    for (size_t i = 0; i < 2; i++) {
        scene_end_pod(&scene, &scene.pods[i], 137);
        scene.pods[i].disruption_target = true;
    }
    scene.pods[0].finished_ms = SCENE_NOW - 5000;
    scene.pods[1].finished_ms = SCENE_NOW;
    scene.input.now_ms = SCENE_NOW + OFF_MS + 1000;
    scene.options.watching_since_ms = SCENE_NOW + OFF_MS;
}

Test(absence, is_counted_once_when_the_pods_are_replaced)
{
    expect_turn("incarnation=2 suspended_ms=3600000");
    expect_turn("incarnation=2 suspended_ms=3600000");
    for (int64_t i = 0; i < 2; i++)
        scene_add_pod(&scene, ROLE_WORKER, i, 2);
    expect_turn("suspended_ms=3600000");
}

Test(absence, is_not_what_an_operator_sees)
{
    scene.options.watching_since_ms = SCENE_NOW - 1;
    expect_turn("incarnation=2 suspended_ms=0");
}

Test(absence, is_not_while_a_pod_runs)
{
    scene.pods[0] = scene.pods[1];
    scene.pods[0].phase = POD_RUNNING;
    scene.pods[0].finished_ms = FIELD_UNSET;
    scene.pods[0].exit_code = EXIT_CODE_NONE;
    scene.pods[0].disruption_target = false;
    scene.pods[0].index = 0;
    scene.pods[0].name = "digits-worker-0-1";
    expect_turn("suspended_ms=0");
}

Test(absence, does_not_count_for_the_deadline)
{
    scene.job.run_policy.active_deadline_seconds = 100;
    expect_turn("Failed:True= incarnation=2 suspended_ms=3600000");
    scene.input.now_ms = SCENE_NOW + OFF_MS + 99999;
    expect_plan("Failed:True=");
    scene.input.now_ms++;
    expect_plan("Failed:True=DeadlineExceeded");
}

Test(absence, is_left_out_of_a_job_that_ended_meanwhile)
{
    for (size_t i = 0; i < 2; i++) {
        scene.pods[i].exit_code = 0;
        scene.pods[i].phase = POD_SUCCEEDED;
        scene.pods[i].disruption_target = false;
    }
    expect_turn("state=Succeeded suspended_ms=3600000");
    expect_turn("suspended_ms=3600000");
}

Test(absence, is_left_out_of_a_job_that_is_suspended_since)
{
    scene.job.suspend = true;
    expect_turn("Suspended:True=Suspended suspended_ms=3600000");
    expect_turn("Suspended:True=Suspended suspended_ms=3600000");
    scene.input.now_ms += 5000;
    scene.job.suspend = false;
    expect_turn("suspended_ms=3605000 attempt=2");
}

/* One that waited for a node ran at no time. */
Test(absence, begins_with_a_pod_that_never_ran)
{
    for (size_t i = 0; i < 2; i++) {
        scene.pods[i].finished_ms = scene.pods[i].started_ms = FIELD_UNSET;
        scene.pods[i].exit_code = EXIT_CODE_NONE;
        scene.pods[i].created_ms = SCENE_NOW;
    }
    expect_turn("incarnation=2 suspended_ms=3600000");
}
