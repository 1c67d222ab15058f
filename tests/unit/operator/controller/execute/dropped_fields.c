/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/dropped_fields.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "operator/controller/execute/status_patch.h"
#include "tests/unit/operator/controller/plan/scene.h"

static struct scene scene;
static struct dropped_fields dropped;

static void init(void)
{
    scene_init_running(&scene, 2);
}

static void fini(void)
{
    dropped_fields_clear(&dropped);
    scene_release(&scene);
}

TestSuite(dropped_fields, .init = init, .fini = fini);

Test(dropped_fields, are_those_of_a_write_that_changed_nothing)
{
    struct job_status after = scene.job.status;
    after.chief_finish_ms = SCENE_NOW;
    SCOPED_JSON *patch = status_patch(&scene.job, &after);
    cr_assert(dropped_fields_in_vain(patch, scene.job.resource_version));
    cr_assert_not(dropped_fields_in_vain(patch, "2"));
    cr_assert_not(dropped_fields_in_vain(patch, NULL));
}

Test(dropped_fields, are_told_once_and_tried_again_later)
{
    struct job_status after = scene.job.status;
    after.chief_finish_ms = SCENE_NOW;
    SCOPED_JSON *patch = status_patch(&scene.job, &after);
    cr_assert_not(dropped_fields_cover(&dropped, &scene.job, &after, SCENE_NOW));
    char *names = dropped_fields_note(&dropped, patch, SCENE_NOW);
    cr_assert_str_eq(names, "status.controllerState.chiefFinishTime");
    free(names);
    cr_assert(dropped_fields_cover(&dropped, &scene.job, &after, SCENE_NOW));
    cr_assert_not(dropped_fields_cover(&dropped, &scene.job, &after, SCENE_NOW + 3600000),
                  "the definition may have come");
    cr_assert_null(dropped_fields_note(&dropped, patch, SCENE_NOW));
}

Test(dropped_fields, do_not_hide_what_is_kept)
{
    struct job_status after = scene.job.status;
    after.chief_finish_ms = SCENE_NOW;
    SCOPED_JSON *patch = status_patch(&scene.job, &after);
    free(dropped_fields_note(&dropped, patch, SCENE_NOW));
    after.restart_count++;
    cr_assert_not(dropped_fields_cover(&dropped, &scene.job, &after, SCENE_NOW));
}
