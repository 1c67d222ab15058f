/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/take_back.h"

#include <criterion/criterion.h>

#include "tests/unit/operator/controller/plan/scene.h"

static struct scene scene;

static void init(void)
{
    scene_init(&scene, 2);
    scene.job.framework = FRAMEWORK_PYTORCH;
    scene_run(&scene);
    scene.input.now_ms += 10000;
}

static void fini(void)
{
    scene_release(&scene);
}

TestSuite(take_back, .init = init, .fini = fini);

static void charge(int exit_code)
{
    scene_end_pod(&scene, &scene.pods[1], exit_code);
    scene_plan(&scene);
    scene_accept(&scene);
    cr_assert_eq(scene.job.status.restarts.failures, 1);
    cr_assert_eq(scene.job.status.attempt, 2);
}

Test(take_back, a_disruption_within_a_minute_explains_the_failure)
{
    charge(1);
    scene.input.now_ms += 59000;
    scene.pods[0].disruption_target = true;
    scene_plan(&scene);
    const struct job_status *status = &scene.plan.status;
    cr_assert_eq(status->restarts.failures, 0);
    cr_assert_eq(status->restarts.disruptions, 1);
    cr_assert_eq(status->restart_count, 1, "it is still one event");
    cr_assert(scene.plan.write_status);
    scene_accept(&scene);
    scene_plan(&scene);
    cr_assert_eq(scene.plan.status.restarts.disruptions, 1, "and is counted once");
}

Test(take_back, not_after_a_minute)
{
    charge(1);
    scene.input.now_ms += 60000;
    scene.pods[0].disruption_target = true;
    scene_plan(&scene);
    cr_assert_eq(scene.plan.status.restarts.failures, 1);
}

Test(take_back, not_for_a_deletion_that_is_ours)
{
    charge(1);
    scene.pods[0].deletion_ms = scene.input.now_ms;
    scene_plan(&scene);
    cr_assert_eq(scene.plan.status.restarts.failures, 1);
    cr_assert_eq(scene.plan.status.restarts.disruptions, 0);
}

Test(take_back, not_for_a_signal)
{
    charge(139);
    scene.pods[0].disruption_target = true;
    scene_plan(&scene);
    cr_assert_eq(scene.plan.status.restarts.failures, 1);
}

Test(take_back, not_for_the_disruption_of_another_crew)
{
    scene.pods[0].disruption_target = true;
    scene_end_pod(&scene, &scene.pods[0], 143);
    scene_end_pod(&scene, &scene.pods[1], 143);
    scene_plan(&scene);
    scene_accept(&scene);
    cr_assert_eq(scene.job.status.restarts.disruptions, 1);
    scene_add_pod(&scene, ROLE_WORKER, 0, 2);
    struct pod_view *failed = scene_add_pod(&scene, ROLE_WORKER, 1, 2);
    scene_plan(&scene);
    scene_accept(&scene);
    scene.input.now_ms += 5000;
    scene_end_pod(&scene, failed, 1);
    scene_plan(&scene);
    scene_accept(&scene);
    scene_plan(&scene);
    cr_assert_eq(scene.plan.status.restarts.failures, 1);
    cr_assert_eq(scene.plan.status.restarts.disruptions, 1);
}

/* Of a crew that goes on without the pod. */
static void charge_one(int exit_code)
{
    scene_end_pod(&scene, &scene.pods[1], exit_code);
    scene_plan(&scene);
    scene_accept(&scene);
    cr_assert_eq(scene.job.status.restarts.failures, 1);
    scene.input.now_ms += 5000;
}

Test(take_back, where_only_the_pod_was_replaced_the_disruption_counts_by_itself)
{
    scene.job.run_policy.restart_scope = RESTART_SCOPE_POD;
    charge_one(1);
    scene.pods[0].disruption_target = true;
    scene_end_pod(&scene, &scene.pods[0], 143);
    scene_plan(&scene);
    cr_assert_eq(scene.plan.status.restarts.failures, 0);
    cr_assert_eq(scene.plan.status.restarts.disruptions, 1);
    cr_assert_eq(scene.plan.status.restarts.ignored, 1);
    cr_assert_eq(scene.plan.status.restart_count, 2);
}

/* Else the next that only follows from another's end would be taken for one that repeats. */
Test(take_back, who_follows_later_is_let_off_as_if_nothing_had_been_charged)
{
    scene.job.run_policy.restart_scope = RESTART_SCOPE_POD;
    charge_one(1);
    scene.pods[0].disruption_target = true;
    scene_end_pod(&scene, &scene.pods[0], 143);
    scene_plan(&scene);
    scene_accept(&scene);
    scene.list[0] = scene_add_pod(&scene, ROLE_WORKER, 0, 3);
    scene.list[1] = scene_add_pod(&scene, ROLE_WORKER, 1, 3);
    scene.input.pod_count = 2;
    scene_plan(&scene);
    scene_accept(&scene);
    scene_end_pod(&scene, &scene.pods[scene.pod_count - 1], 138);
    scene_plan(&scene);
    cr_assert_eq(scene.plan.status.restart_count, 3);
    cr_assert_eq(scene.plan.status.restarts.failures, 0);
}
