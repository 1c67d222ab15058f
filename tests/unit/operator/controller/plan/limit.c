/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/limit.h"

#include <criterion/criterion.h>

#include "tests/unit/operator/controller/plan/scene.h"

SCENE_SUITE(limit)
{
    scene_init_running(&scene, 2);
}

Test(limit, each_class_has_its_counter)
{
    struct job_status status = {0};
    static const enum ending_kind kinds[] = {ENDING_FAILURE, ENDING_DISRUPTION, ENDING_DISRUPTION, ENDING_OUT_OF_MEMORY,
                                             ENDING_COLLATERAL};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        limit_count(&status, kinds[i]);
    cr_assert_eq(status.restarts.failures, 1);
    cr_assert_eq(status.restarts.disruptions, 2);
    cr_assert_eq(status.restarts.out_of_memory, 1);
    cr_assert_eq(status.restart_count, 5);
}

Test(limit, failures_and_lack_of_memory_spend_it_together_disruptions_never)
{
    struct run_policy policy = {.backoff_limit = 2};
    struct job_status status = {.restarts = {.failures = 1, .disruptions = 900, .out_of_memory = 1}};
    cr_assert_not(limit_exceeded(&status, &policy));
    status.restarts.failures++;
    cr_assert(limit_exceeded(&status, &policy));
}

Test(limit, the_event_beyond_it_fails_the_job)
{
    scene.job.run_policy.backoff_limit = 0;
    scene_end_pod(&scene, &scene.pods[1], 137);
    expect_plan("Failed:True=BackoffLimitExceeded failures=1 incarnation=1 (no incarnation for pods that never come)");
}
