/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/unit/operator/controller/plan/terminal.h"

SCENE_SUITE(clean)
{
    scene_init(&scene, 2);
}

static size_t deletes(enum clean_pod_policy policy, int64_t later_ms)
{
    scene_release(&scene);
    scene_init(&scene, 3);
    scene.job.run_policy.clean_pod_policy = policy;
    scene_succeed(&scene);
    scene.input.now_ms += later_ms;
    scene_plan(&scene);
    size_t count = scene_count(&scene, ACTION_DELETE_POD);
    return count;
}

Test(clean, policy_decides_which_pods_are_deleted)
{
    cr_assert_eq(deletes(CLEAN_NONE, 60000), 0);
    cr_assert_eq(deletes(CLEAN_RUNNING, 60000), 2);
    cr_assert_eq(deletes(CLEAN_ALL, 60000), 3);
}

Test(clean, after_a_success_the_others_may_end_by_themselves)
{
    cr_assert_eq(deletes(CLEAN_RUNNING, 0), 0);
    cr_assert_eq(deletes(CLEAN_RUNNING, 9999), 0);
    cr_assert_eq(deletes(CLEAN_RUNNING, 10000), 2);
}

Test(clean, after_a_failure_nobody_waits)
{
    scene_release(&scene);
    scene_init_running(&scene, 3);
    scene_end_pod(&scene, &scene.pods[1], 64);
    scene_turn(&scene);
    expect_plan("delete_pod=2");
}

Test(clean, a_create_that_was_on_the_wire_is_deleted_at_sight)
{
    scene.job.run_policy.clean_pod_policy = CLEAN_NONE;
    scene_run(&scene);
    scene_end_pod(&scene, &scene.pods[1], 137);
    scene_turn(&scene);
    scene_end_pod(&scene, &scene.pods[0], 0);
    scene.input.now_ms += 5000;
    expect_turn("job.state=Succeeded");
    expect_plan("actions=0");
    scene_add_pod(&scene, ROLE_WORKER, 1, 2);
    expect_plan("delete_pod=1");
}

Test(clean, nothing_is_created_after_the_end_even_if_objects_are_deleted)
{
    scene_succeed(&scene);
    scene.input.pod_count = 0;
    scene.input.service = NULL;
    expect_plan("actions=0 state=Succeeded");
}
