/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "scene.h"

static struct scene scene;

static void init(void)
{
    scene_init(&scene, 2);
    scene.job.elastic = (struct elastic_spec){.enabled = true, .min_workers = 1, .max_workers = 4};
    scene_run(&scene);
}

static void fini(void)
{
    scene_release(&scene);
}

TestSuite(scale, .init = init, .fini = fini);

Test(scale, growth_is_promised_under_a_new_epoch)
{
    scene.job.document.workers = 4;
    scene_plan(&scene);
    cr_assert_eq(scene.plan.status.workers, 4);
    cr_assert_eq(scene.plan.status.epoch, 2);
    cr_assert_str_eq(scene.plan.status.replicas[ROLE_WORKER].pending, "2-3");
    cr_assert_eq(scene.plan.status.restart_count, 0);
    scene_accept(&scene);
    scene_plan(&scene);
    cr_assert_eq(scene_count(&scene, ACTION_CREATE_POD), 2);
}

Test(scale, shrinking_ends_the_highest_indices)
{
    scene.job.document.workers = 1;
    scene_plan(&scene);
    cr_assert_eq(scene.plan.status.workers, 1);
    cr_assert_eq(scene.plan.action_count, 0);
    scene_accept(&scene);
    scene_plan(&scene);
    cr_assert_eq(scene_count(&scene, ACTION_DELETE_POD), 1);
    cr_assert_eq(scene.plan.status.restart_count, 0);
    for (size_t i = 0; i < scene.plan.action_count; i++)
        cr_assert_eq(scene.plan.actions[i].pod->index, 1);
}
