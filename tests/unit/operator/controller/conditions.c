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

Test(conditions, a_chief_that_is_not_heard_is_named_with_the_usual_cause)
{
    scene.job.status.progress.examples_per_second = "5123.4";
    scene.input.chief_voice = CHIEF_SILENT;
    scene_plan(&scene);
    cr_assert_str_eq(scene_reason(&scene, CONDITION_RUNNING, CONDITION_TRUE), "CrewComplete");
    cr_assert_str_eq(scene.plan.status.conditions[CONDITION_RUNNING].message,
                     "all required pods are ready; worker 0 answers nothing on port 8080, so that its progress is "
                     "unknown: see whether a NetworkPolicy keeps the operator from it");
    cr_assert_null(scene.plan.status.progress.examples_per_second, "nobody knows");
    scene_accept(&scene);
    scene_plan(&scene);
    cr_assert_not(scene.plan.write_status, "said once");
    scene.input.chief_voice = CHIEF_STRANGE;
    scene_plan(&scene);
    cr_assert_str_eq(scene.plan.status.conditions[CONDITION_RUNNING].message,
                     "all required pods are ready; worker 0 answers on port 8080, but with no status of this job, so "
                     "that its progress is unknown: see whether its image is a worker of another version");
    cr_assert_null(scene.plan.status.progress.examples_per_second);
    scene.input.chief_voice = CHIEF_HEARD;
    scene_plan(&scene);
    cr_assert_str_eq(scene.plan.status.conditions[CONDITION_RUNNING].message, "all required pods are ready");
}
