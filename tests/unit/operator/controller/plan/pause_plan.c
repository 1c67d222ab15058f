/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "common/contract/environment.h"
#include "tests/unit/operator/controller/plan/scene.h"

/* A crew of two that waits at step 20. */
SCENE_SUITE(pause_plan)
{
    scene_init_running(&scene, 2);
    scene_turn(&scene);
    scene.job.pause_step = 20;
    scene.input.crew_message = PAUSE_MESSAGE "20 of 60, which is saved: the sweep decides whether the job continues";
}

Test(pause_plan, a_crew_waits_as_long_as_a_sweep_decides)
{
    expect_turn("attempt=1 Restarting:True=");
}

Test(pause_plan, a_crew_that_nobody_decides_about_starts_over)
{
    scene.job.pause_step = FIELD_UNSET;
    expect_turn("attempt=2 failures=0 worker.pending=0-1 Restarting:True=PauseOver event=PauseOver");
    expect_turn("delete_pod=2 attempt=2 failures=0 (although the pods that go still say that they wait)");
}

Test(pause_plan, a_crew_that_waits_for_a_member_does_not)
{
    scene.job.pause_step = FIELD_UNSET;
    scene.input.crew_message = "waiting for rank 1 (worker 1, 10.0.0.7:2223) in the all-reduce of step 21";
    expect_turn("attempt=1 Restarting:True=");
}
