/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/saves.h"

#include <criterion/criterion.h>

#include "tests/unit/operator/controller/plan/scene.h"

SCENE_SUITE(saves)
{
    scene_init_running(&scene, 1);
}

#define FULL "save step 400: cannot write x: No space left on device"

static const struct condition *failing(void)
{
    return &scene.plan.status.conditions[CONDITION_CHECKPOINTS_FAILING];
}

Test(saves, a_failure_is_told_once_and_taken_back)
{
    scene.job.status.progress.last_checkpoint_step = 300;
    scene.input.saves = (struct saves_input){.failure = "VolumeFull", .message = FULL};
    const struct plan *plan = scene_plan(&scene);
    cr_assert_str_eq(scene_reason(&scene, CONDITION_CHECKPOINTS_FAILING, CONDITION_TRUE), "VolumeFull");
    cr_assert_str_eq(failing()->message, FULL "; training goes on, the newest checkpoint is of step 300");
    cr_assert(plan->write_status && plan->event_count == 1 && plan->events[0].warning);
    cr_assert_eq(job_status_state(&plan->status), CONDITION_RUNNING);
    scene_accept(&scene);
    plan = scene_plan(&scene);
    cr_assert(plan->event_count == 0 && !plan->write_status, "nothing new");
    scene.input.saves = (struct saves_input){.failure = NULL};
    expect_plan("CheckpointsFailing:True=VolumeFull (a chief that has not saved yet takes nothing back)");
    scene.job.status.progress.last_checkpoint_step = 500;
    scene.input.saves.succeeded = true;
    plan = scene_plan(&scene);
    cr_assert_str_eq(scene_reason(&scene, CONDITION_CHECKPOINTS_FAILING, CONDITION_FALSE), "Saved");
    cr_assert(plan->write_status && plan->event_count == 1 && !plan->events[0].warning);
}

Test(saves, a_job_that_never_failed_to_save_has_no_such_condition)
{
    scene.input.saves.succeeded = true;
    scene_plan(&scene);
    cr_assert_eq(failing()->status, CONDITION_ABSENT);
}

Test(saves, success_has_saved_and_a_failed_job_keeps_the_word)
{
    for (int code = 0; code <= 70; code += 70) {
        scene_renew();
        scene.input.saves = (struct saves_input){.failure = "SaveFailed", .message = FULL};
        scene_turn(&scene);
        scene_end_pod(&scene, &scene.pods[0], code);
        scene.input.now_ms += 10000;
        scene_plan(&scene);
        cr_assert_eq(job_status_state(&scene.plan.status), code == 0 ? CONDITION_SUCCEEDED : CONDITION_FAILED);
        cr_assert_eq(failing()->status, code == 0 ? CONDITION_FALSE : CONDITION_TRUE);
    }
}
