/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/status_patch.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/operator/controller/plan/scene.h"

SCENE_SUITE(status_patch)
{
    scene_init_running(&scene, 2);
}

Test(status_patch, holds_the_changes_and_the_version_that_they_assume)
{
    struct job_status after = scene.job.status;
    after.incarnation = 9;
    SCOPED_JSON *patch = status_patch(&scene.job, &after);
    cr_assert_str_eq(json_string_at(patch, "metadata.resourceVersion", ""), "1");
    cr_assert_eq(json_count(json_at(patch, "status")), 1);
    cr_assert_eq(json_integer_at(patch, "status.controllerState.incarnation", 0), 9);
}

Test(status_patch, what_goes_becomes_null)
{
    scene.job.status.backoff_until_ms = SCENE_NOW;
    struct job_status after = scene.job.status;
    after.backoff_until_ms = FIELD_UNSET;
    SCOPED_JSON *patch = status_patch(&scene.job, &after);
    cr_assert_eq(json_type(json_at(patch, "status.controllerState.backoffUntil")), JSON_NULL);
}

Test(status_patch, applied_it_gives_the_status_that_was_planned)
{
    scene_release(&scene);
    scene_init_running(&scene, 3);
    scene_end_pod(&scene, &scene.pods[1], 137);
    scene_plan(&scene);
    SCOPED_JSON *patch = status_patch(&scene.job, &scene.plan.status);
    struct json *stored = json_new_object();
    json_set(stored, "status", job_status_to_json(&scene.job.status));
    json_merge_patch(&stored, patch);
    SCOPED_JSON *planned = job_status_to_json(&scene.plan.status);
    cr_assert(json_equal(json_member(stored, "status"), planned));
    json_free(stored);
}
