/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "common/contract/labels.h"
#include "tests/unit/operator/controller/plan/terminal.h"

SCENE_SUITE(ttl)
{
    scene_init(&scene, 1);
}

Test(ttl, deletes_the_job_when_its_time_has_come)
{
    scene.job.run_policy.ttl_seconds_after_finished = 60;
    scene_succeed(&scene);
    int64_t due = scene.job.status.completion_ms + 60000;
    expect_plan("delete_job=0");
    cr_assert_eq(scene.plan.requeue_ms, due);
    scene.input.now_ms = due;
    expect_plan("delete_job=1");
}

Test(ttl, leaves_out_by_how_much_the_clock_was_set)
{
    const int64_t moves[] = {3600000, -3600000};
    for (size_t i = 0; i < 2; i++) {
        scene_renew();
        scene.job.run_policy.ttl_seconds_after_finished = 60;
        scene_succeed(&scene);
        int64_t due = scene.job.status.completion_ms + moves[i] + 60000;
        scene.input.moved_ms[STATUS_TIME_COMPLETION] = moves[i];
        scene.input.now_ms = due - 1;
        scene_plan(&scene);
        cr_assert_eq(scene_count(&scene, ACTION_DELETE_JOB), 0, "set by %lld", (long long)moves[i]);
        cr_assert_eq(scene.plan.requeue_ms, due);
        scene.input.now_ms = due;
        scene_plan(&scene);
        cr_assert_eq(scene_count(&scene, ACTION_DELETE_JOB), 1, "set by %lld", (long long)moves[i]);
    }
}

Test(ttl, a_running_job_stays)
{
    scene.job.run_policy.ttl_seconds_after_finished = 0;
    scene_run(&scene);
    scene.input.now_ms += 1000000;
    expect_plan("delete_job=0");
}

Test(ttl, leaves_a_copy_to_multikueue_and_deletes_the_job_that_was_sent_away)
{
    scene.job.run_policy.ttl_seconds_after_finished = 0;
    scene_succeed(&scene);
    scene.job.queue_workload = scene.job.name;
    expect_plan("delete_job=0 (Kueue would create it again)");
    scene.job.queue_workload = NULL;
    scene.job.managed_by = MANAGED_BY_MULTIKUEUE;
    expect_plan("delete_job=1 actions=1");
}
