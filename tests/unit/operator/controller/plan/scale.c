/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/unit/operator/controller/plan/scene.h"

SCENE_SUITE(scale)
{
    scene_init(&scene, 2);
    scene.job.elastic = (struct elastic_spec){.enabled = true, .min_workers = 1, .max_workers = 4};
    scene_run(&scene);
}

Test(scale, growth_is_promised_under_a_new_incarnation)
{
    scene.job.document.workers = 4;
    expect_turn("workers=4 incarnation=2 worker.pending=2-3 restart_count=0");
    expect_plan("create_pod=2");
}

Test(scale, shrinking_ends_the_highest_indices)
{
    scene.job.document.workers = 1;
    expect_turn("workers=1 actions=0");
    expect_plan("delete_pod=1 restart_count=0");
    for (size_t i = 0; i < scene.plan.action_count; i++)
        cr_assert_eq(scene.plan.actions[i].pod->index, 1);
}

/* Running means that training can go on: minReplicas of them, the first always among them. */
Test(scale, an_elastic_crew_runs_with_its_smallest_number)
{
    scene.pods[1].ready = false;
    expect_plan("Running:True=CrewSufficient");
    cr_assert_str_eq(scene.plan.status.conditions[CONDITION_RUNNING].message,
                     "1 of 2 workers are ready, and workers.minReplicas is 1");
    cr_assert_str_eq(scene.plan.status.ready_summary, "1/2");
    scene.pods[0].ready = false;
    scene.pods[1].ready = true;
    expect_plan("Running:False=CrewIncomplete");
}

Test(scale, below_the_smallest_number_it_does_not_run)
{
    scene.job.elastic.min_workers = 2;
    scene.pods[1].ready = false;
    expect_plan("Running:False=CrewIncomplete");
}

Test(scale, worker_0_is_never_scaled_away)
{
    scene.job.document.workers = 1;
    scene_turn(&scene);
    for (int turn = 0; turn < 3; turn++) {
        scene_plan(&scene);
        for (size_t i = 0; i < scene.plan.action_count; i++)
            cr_assert_neq(scene.plan.actions[i].pod->index, 0);
    }
}

Test(scale, growth_while_suspended_is_acknowledged_with_the_resumed_crew)
{
    scene.job.suspend = true;
    scene.pod_count = scene.input.pod_count = 0;
    for (int turn = 0; turn < 3; turn++)
        scene_turn(&scene);
    cr_assert_eq(job_status_state(&scene.job.status), CONDITION_SUSPENDED);
    scene.job.document.workers = 4;
    scene.job.suspend = false;
    expect_turn("workers=4 incarnation=2");
    expect_plan("incarnation=2 (one promise is enough) create_pod=4");
}

/* Else an index that comes back later would be taken for one that was lost. */
Test(scale, a_crew_that_starts_over_acknowledges_the_smaller_number)
{
    scene.job.run_policy.restart_scope = RESTART_SCOPE_JOB;
    scene.job.document.workers = 1;
    scene_end_pod(&scene, &scene.pods[0], 137);
    expect_turn("workers=1");
    scene.job.document.workers = 2;
    expect_plan("restart_count=1 (growing is no loss)");
}

/* Scaled away and back within one incarnation: the pod that went was not lost. */
Test(scale, an_index_that_was_scaled_away_may_come_back)
{
    scene.job.status.workers = scene.job.document.workers = 1;
    scene.pod_count = scene.input.pod_count = 1;
    struct gone_pod gone = {.role = ROLE_WORKER, .index = 1};
    scene.input.memory.gone = &gone;
    scene.input.memory.gone_count = 1;
    scene.input.memory.gone_incarnation = 1;
    scene.job.document.workers = 2;
    expect_plan("restart_count=0 worker.pending=1");
}

/* Promised pods above the new number leave the status, under any policy. */
Test(scale, a_smaller_number_is_acknowledged_by_the_next_write)
{
    scene_end_pod(&scene, &scene.pods[1], 137);
    expect_turn("job.worker.pending=1");
    scene.job.document.workers = 1;
    scene.pods[0].owner_uid = "";
    scene.pods[0].adoptable = true;
    expect_turn("adopt_pod=1 worker.pending=none workers=1");
    scene.pods[0].owner_uid = SCENE_UID;
    scene.job.document.workers = 2;
    expect_plan("worker.pending=1 restart_count=1 (whose end was judged before)");
}

/* Nor for one whom it can do without, though both are promised under one incarnation. */
Test(scale, a_crew_that_runs_and_grows_waits_for_no_back_off)
{
    scene.job.roles[ROLE_EVALUATOR].count = 1;
    scene_end_pod(&scene, scene_add_pod(&scene, ROLE_EVALUATOR, 0, 1), 139);
    scene.job.status.restart_count = 9;
    scene_turn(&scene);
    cr_assert_neq(scene.job.status.backoff_until_ms, FIELD_UNSET);
    scene.pods[2].current = false;
    scene.job.document.workers = 3;
    scene_turn(&scene);
    expect_plan("create_pod=1");
    for (size_t i = 0; i < scene.plan.action_count; i++)
        cr_assert(scene.plan.actions[i].type != ACTION_CREATE_POD || scene.plan.actions[i].role == ROLE_WORKER);
    cr_assert_leq(scene.plan.requeue_ms, scene.job.status.backoff_until_ms);
    scene.input.now_ms = scene.job.status.backoff_until_ms;
    expect_plan("create_pod=2");
}
