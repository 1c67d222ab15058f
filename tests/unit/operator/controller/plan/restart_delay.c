/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/restart_delay.h"

#include <criterion/criterion.h>
#include <inttypes.h>

#include "tests/unit/operator/controller/plan/scene.h"

SCENE_SUITE(restart_delay)
{
    scene_init_running(&scene, 2);
}

Test(restart_delay, doubles_from_the_second_event_up_to_a_ceiling)
{
    cr_assert_eq(restart_delay_ms(1, 0, 0), 0);
    cr_assert_eq(restart_delay_ms(2, 0, 0), 1000);
    cr_assert_eq(restart_delay_ms(3, 0, 0), 2000);
    cr_assert_eq(restart_delay_ms(7, 0, 0), 32000);
    cr_assert_eq(restart_delay_ms(60, 0, 0), RESTART_DELAY_CEILING_MS);
    cr_assert_eq(restart_delay_ms(INT64_MAX, 0, 0), RESTART_DELAY_CEILING_MS);
}

Test(restart_delay, a_crew_that_worked_is_let_off)
{
    cr_assert_eq(restart_delay_ms(3, 100, 0), 1000);
    cr_assert_eq(restart_delay_ms(3, 200, 0), 0);
    cr_assert_eq(restart_delay_ms(60, RESTART_DELAY_CEILING_MS / 10, 0), 0);
    cr_assert_eq(restart_delay_ms(60, INT64_MAX, 0), 0);
}

Test(restart_delay, failures_of_foreign_scripts_double_from_ten_seconds)
{
    static const int64_t waits_s[] = {0, 10, 20, 40, 80, 160, 320, 360, 360};
    for (size_t i = 0; i < sizeof waits_s / sizeof *waits_s; i++)
        cr_expect_eq(restart_delay_failure_ms((int64_t)i + 1, 10000, 0), 1000 * waits_s[i]);
    cr_expect_eq(restart_delay_failure_ms(INT64_MAX, 0, 0), RESTART_DELAY_CEILING_MS);
    cr_expect_eq(restart_delay_failure_ms(7, RESTART_DELAY_RECOVERED_MS - 1, 0), 320000);
    cr_expect_eq(restart_delay_failure_ms(7, RESTART_DELAY_RECOVERED_MS, 0), 0);
}

/* A crew that starts, runs for `ran_s` and fails by exit code 1, `failures` times in all; how long it waits then. */
static int64_t wait_after_failures(enum framework framework, int64_t failures, int64_t ran_s)
{
    scene_renew();
    scene.job.framework = framework;
    scene.job.status.restart_count = scene.job.status.restarts.failures = failures - 1;
    scene.input.now_ms += 1000 * (ran_s + 1);
    scene_end_pod(&scene, &scene.pods[1], framework == FRAMEWORK_COXSWAIN ? 137 : 1);
    scene_plan(&scene);
    int64_t until_ms = scene.plan.status.backoff_until_ms;
    int64_t wait_ms = until_ms == FIELD_UNSET ? 0 : until_ms - scene.input.now_ms;
    return wait_ms;
}

Test(restart_delay, a_foreign_script_that_crashes_after_ten_seconds_backs_off)
{
    cr_expect_eq(wait_after_failures(FRAMEWORK_PYTORCH, 1, 10), 0);
    int64_t second = wait_after_failures(FRAMEWORK_PYTORCH, 2, 10);
    cr_expect(second >= 10000 && second <= 11000);
    int64_t sixth = wait_after_failures(FRAMEWORK_PYTORCH, 6, 10);
    cr_expect(sixth >= 160000 && sixth <= 176000);
    cr_expect_eq(wait_after_failures(FRAMEWORK_PYTORCH, 6, 600), 0, "it had run well for a while");
    cr_expect_eq(wait_after_failures(FRAMEWORK_COXSWAIN, 6, 10), 0, "ready means that it was in its crew");
}

/* The pod ends when its crew has run for `ran_s`; how long its successor waits. */
static int64_t wait_when_ended_after(struct pod_view *pod, int64_t ran_s)
{
    scene.input.now_ms += 1000 * ran_s + 1000;
    scene_end_pod(&scene, pod, 137);
    scene_turn(&scene);
    pod->current = false;
    int64_t until_ms = scene.job.status.backoff_until_ms;
    return until_ms == FIELD_UNSET ? 0 : until_ms - scene.input.now_ms;
}

/* Its successor is ready, and the crew runs again. */
static struct pod_view *successor(int64_t index)
{
    struct pod_view *pod = scene_add_pod(&scene, ROLE_WORKER, index, scene.job.status.incarnation);
    for (int i = 0; i < 2; i++)
        scene_turn(&scene);
    cr_assert_eq(scene.job.status.conditions[CONDITION_RUNNING].status, CONDITION_TRUE);
    return pod;
}

Test(restart_delay, begins_anew_after_ten_good_minutes)
{
    scene.job.status.restart_count = 8;
    scene.job.status.restarts.disruptions = 8;
    scene.job.run_policy.backoff_limit = 100;
    cr_assert_eq(wait_when_ended_after(&scene.pods[1], 599), 0, "it had worked");
    struct pod_view *pod = successor(1);
    int64_t wait_ms = wait_when_ended_after(pod, 0);
    cr_assert(wait_ms >= 256000 && wait_ms <= 281600, "the tenth event waits for %" PRId64 " ms", wait_ms);
    scene.input.now_ms += wait_ms;
    pod = successor(1);
    cr_assert_eq(wait_when_ended_after(pod, 600), 0);
    pod = successor(1);
    wait_ms = wait_when_ended_after(pod, 0);
    cr_assert(wait_ms >= 1000 && wait_ms <= 1100, "the second since then waits for %" PRId64 " ms", wait_ms);
    scene.input.now_ms += wait_ms;
    pod = successor(1);
    wait_ms = wait_when_ended_after(pod, 0);
    cr_assert(wait_ms >= 2000 && wait_ms <= 2200, "the third since then waits for %" PRId64 " ms", wait_ms);
    cr_assert_eq(scene.job.status.restart_count, 13, "what is shown to people goes on counting");
}

Test(restart_delay, after_failures_of_foreign_scripts_begins_anew_after_ten_good_minutes)
{
    scene.job.framework = FRAMEWORK_PYTORCH;
    scene.job.run_policy.backoff_limit = 100;
    struct job_status *status = &scene.job.status;
    status->restart_count = status->restarts.failures = 8;
    cr_assert_eq(wait_when_ended_after(&scene.pods[1], 600), 0);
    cr_assert_eq(status->recovered_failures, 8);
    scene_release(&scene);

    scene_init_running(&scene, 2);
    scene.job.framework = FRAMEWORK_PYTORCH;
    scene.job.run_policy.backoff_limit = 100;
    status->restart_count = status->restarts.failures = 9;
    status->recovered_restarts = status->recovered_failures = 8;
    int64_t wait_ms = wait_when_ended_after(&scene.pods[1], 10);
    cr_assert(wait_ms >= 10000 && wait_ms <= 11000, "%" PRId64, wait_ms);
    scene_release(&scene);
}

Test(restart_delay, jitter_is_at_most_a_tenth)
{
    for (int64_t incarnation = 0; incarnation < 1000; incarnation++) {
        int64_t delay = restart_delay_ms(5, 0, restart_delay_seed("a", incarnation));
        cr_assert(delay >= 8000 && delay <= 8800);
    }
    cr_assert_eq(restart_delay_seed("a", 1), restart_delay_seed("a", 1));
    cr_assert_neq(restart_delay_seed("a", 1), restart_delay_seed("b", 1));
}

Test(restart_delay, is_durable_and_waited_for)
{
    scene.job.status.restart_count = 3;
    scene_end_pod(&scene, &scene.pods[1], 137);
    scene_plan(&scene);
    int64_t until = scene.plan.status.backoff_until_ms;
    cr_assert(until >= SCENE_NOW + 4000 && until <= SCENE_NOW + 4400);
    scene_accept(&scene);
    scene.pods[1].current = false;
    expect_plan("create_pod=0");
    cr_assert_leq(scene.plan.requeue_ms, until);
    scene.input.now_ms = until;
    expect_plan("create_pod=1");
}
