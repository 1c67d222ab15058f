/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/conditions.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "scene.h"

static struct scene scene;

static void init(void)
{
    scene_init_running(&scene, 2);
}

static void fini(void)
{
    scene_release(&scene);
}

TestSuite(conditions, .init = init, .fini = fini);

Test(conditions, a_crew_that_waits_says_so_in_the_chiefs_words)
{
    char words[] = "waiting for worker 1: its state comes from worker 0";
    scene.pods[1].ready = false;
    scene_plan(&scene);
    cr_assert_str_eq(scene.plan.status.conditions[CONDITION_RUNNING].message, "waiting for worker 1");
    scene.input.crew_message = words;
    scene_plan(&scene);
    snprintf(words, sizeof words, "other words by now");
    cr_assert_str_eq(scene.plan.status.conditions[CONDITION_RUNNING].message,
                     "waiting for worker 1: its state comes from worker 0");
}
