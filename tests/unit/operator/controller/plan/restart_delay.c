/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/restart_delay.h"

#include <criterion/criterion.h>

#include "tests/unit/operator/controller/plan/scene.h"

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
    struct scene scene;
    scene_init_running(&scene, 2);
    scene.job.status.restart_count = 3;
    scene_end_pod(&scene, &scene.pods[1], 137);
    scene_plan(&scene);
    int64_t until = scene.plan.status.backoff_until_ms;
    cr_assert(until >= SCENE_NOW + 4000 && until <= SCENE_NOW + 4400);
    scene_accept(&scene);
    scene.pods[1].current = false;
    scene_plan(&scene);
    cr_assert_eq(scene_count(&scene, ACTION_CREATE_POD), 0);
    cr_assert_leq(scene.plan.requeue_ms, until);
    scene.input.now_ms = until;
    scene_plan(&scene);
    cr_assert_eq(scene_count(&scene, ACTION_CREATE_POD), 1);
    scene_release(&scene);
}
