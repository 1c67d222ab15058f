/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/unit/operator/controller/plan/scene.h"

SCENE_SUITE(deleting)
{
    scene_init_running(&scene, 2);
    scene.input.now_ms += 60000;
    scene.job.deleted_ms = scene.input.now_ms;
}

Test(deleting, a_crew_that_a_finalizer_keeps_trains_on_and_the_status_says_why)
{
    expect_plan("actions=0");
    cr_assert(scene.plan.write_status || scene.plan.counts_wait, "with the numbers that change next, or soon");
    cr_assert_str_eq(scene_reason(&scene, CONDITION_RUNNING, CONDITION_TRUE), "Deleting");
}

Test(deleting, pods_that_go_are_nobodys_fault_and_not_replaced)
{
    scene_end_pod(&scene, &scene.pods[1], 137);
    expect_turn("actions=0 restart_count=0 Running:False=Deleting");
    scene.input.pod_count = 0;
    scene.input.now_ms += 60000;
    expect_plan("actions=0 worker.active=0 incarnation=1");
}

Test(deleting, a_dead_node_does_not_keep_it)
{
    scene.pods[1].deletion_ms = scene.input.now_ms;
    scene.pods[1].grace_ms = 30000;
    scene.input.now_ms += 30000 + scene.options.dead_node_ms;
    expect_plan("force_delete_pod=1");
}

Test(deleting, a_job_that_is_over_says_nothing_new)
{
    scene.job.deleted_ms = FIELD_UNSET;
    scene_end_pod(&scene, &scene.pods[0], 64);
    scene_turn(&scene);
    scene.job.deleted_ms = scene.input.now_ms;
    expect_plan("actions=0 write_status=0");
}

Test(deleting, a_job_that_nobody_began_is_left_alone)
{
    scene_release(&scene);
    scene_init(&scene, 2);
    scene.job.deleted_ms = scene.input.memory.born_ms = SCENE_NOW;
    expect_plan("actions=0 write_status=0");
}
