/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/json_of.h"
#include "tests/unit/operator/controller/plan/scene.h"

static char uid[] = "class-1", flaw[] = "spec.storage: each storage needs a source";
static struct json *defaults;
static struct class_view view;

SCENE_SUITE(class_plan)
{
    scene_init(&scene, 2);
    scene.options.unrecorded_crews = true;
    scene.input.memory.born_ms = SCENE_NOW;
    scene.job.training_class.name = "gpu";
    scene.input.class.state = OPTIONAL_READY;
    defaults = json_of("{\"image\":\"i\"}");
    view = (struct class_view){.uid = uid, .generation = 3, .spec = defaults};
}

static const char *message(void)
{
    return scene.plan.status.conditions[CONDITION_SCHEDULED].message;
}

static void expect_wait(const char *reason, const char *words)
{
    scene_plan(&scene);
    cr_expect_eq(scene.plan.action_count, 0);
    cr_expect_eq(scene.plan.status.attempt, 0, "nothing is promised");
    cr_expect_str_eq(scene_reason(&scene, CONDITION_SCHEDULED, CONDITION_FALSE), reason);
    cr_expect(strstr(message(), words) != NULL, "%s", message());
}

Test(class_plan, the_defaults_are_in_the_status_before_anything_is_made)
{
    scene.input.class.view = &view;
    expect_plan("begun=0 actions=0 write_status=1 only_informs=0 attempt=0 event=TrainingClassTaken");
    const struct pinned_class *pinned = &scene.plan.status.training_class;
    cr_expect_str_eq(pinned->name, "gpu");
    cr_expect_str_eq(pinned->uid, "class-1");
    cr_expect_eq(pinned->generation, 3);
    cr_expect(json_equal(pinned->defaults, defaults) && pinned->defaults != defaults, "the cache may drop its own");
    scene.job.status.training_class =
        (struct pinned_class){.name = "gpu", .uid = "class-1", .generation = 3, .defaults = defaults};
    expect_plan("begun=1 create_pod=2 (its first crew is like any other)");
    json_free(defaults);
}

Test(class_plan, a_job_waits_for_its_class)
{
    expect_wait("TrainingClassMissing", "ClusterTrainingClass gpu does not exist: create it, or delete the job");
    scene_expect("event=TrainingClassMissing");
    scene.input.memory.counts_since_ms = SCENE_NOW;
    scene.input.now_ms += scene.options.count_write_ms;
    expect_turn("write_status=1");
    expect_plan("write_status=0 actions=0 event=none");
    scene.input.class.view = &view;
    expect_plan("write_status=1 event=TrainingClassTaken Scheduled:False=Pending");
    json_free(defaults);
}

Test(class_plan, what_keeps_the_class_away_is_told)
{
    view.flaw = flaw;
    scene.input.class.view = &view;
    expect_wait("TrainingClassInvalid", "correct ClusterTrainingClass gpu: spec.storage: each");
    scene.input.class = (struct class_input){.state = OPTIONAL_MISSING};
    expect_wait("TrainingClassMissing", "the cluster does not serve clustertrainingclasses: install the definition");
    cr_expect_lt(scene.plan.requeue_ms, PLAN_NEVER);
    scene.input.class = (struct class_input){.state = OPTIONAL_UNKNOWN, .refusal = "forbidden"};
    expect_wait("TrainingClassUnknown",
                "has no access to clustertrainingclasses; allow its ClusterRole to list and watch them: forbidden");
    cr_expect_lt(scene.plan.requeue_ms, PLAN_NEVER);
    json_free(defaults);
}

Test(class_plan, a_class_of_the_namespace_is_told_as_such)
{
    scene.job.training_class.kind = TRAINING_CLASS_NAMESPACED;
    expect_wait("TrainingClassMissing", "TrainingClass gpu does not exist: create it");
    cr_expect(strncmp(message(), "TrainingClass", 13) == 0, "%s", message());
    scene.input.class = (struct class_input){.state = OPTIONAL_MISSING};
    expect_wait("TrainingClassMissing", "the cluster does not serve trainingclasses");
    scene.input.class = (struct class_input){.state = OPTIONAL_READY, .view = &view};
    expect_plan("write_status=1 event=TrainingClassTaken");
    cr_expect_eq(scene.plan.status.training_class.kind, TRAINING_CLASS_NAMESPACED);
    json_free(defaults);
}

Test(class_plan, while_the_cache_fills_nothing_is_told)
{
    scene.input.class.state = OPTIONAL_UNKNOWN;
    expect_plan("actions=0 attempt=0 event=none Scheduled:False=");
    cr_expect_lt(scene.plan.requeue_ms, PLAN_NEVER);
    json_free(defaults);
}

Test(class_plan, a_suspended_job_is_suspended_without_its_class)
{
    scene.job.suspend = true;
    expect_plan("actions=0 Suspended:True=Suspended");
    scene.input.class.view = &view;
    expect_plan("write_status=1 event=TrainingClassTaken");
    json_free(defaults);
}

Test(class_plan, a_job_that_runs_keeps_what_it_was_created_with)
{
    scene.job.status.training_class =
        (struct pinned_class){.name = "gpu", .uid = "class-1", .generation = 2, .defaults = defaults};
    scene_run(&scene);
    scene.input.class.view = &view;
    expect_plan("actions=0");
    cr_expect_eq(scene.plan.status.training_class.generation, 2);
    scene.input.class = (struct class_input){.state = OPTIONAL_READY};
    expect_plan("actions=0 state=Running");
    json_free(defaults);
}

Test(class_plan, a_resumed_job_that_waits_is_not_suspended)
{
    scene.job.suspend = true;
    expect_turn("Suspended:True=Suspended");
    scene.job.suspend = false;
    expect_turn("actions=0 attempt=0 Suspended:False=Resumed Scheduled:False=TrainingClassMissing");
    scene.input.class.view = &view;
    expect_plan("write_status=1 event=TrainingClassTaken Suspended:False=Resumed");
    json_free(defaults);
}

Test(class_plan, a_job_that_an_operator_without_classes_started_runs_on)
{
    scene.job.training_class.name = NULL;
    scene_run(&scene);
    scene.job.training_class.name = "gpu";
    expect_turn("actions=0 event=none Scheduled:False=");
    scene.input.class.view = &view;
    expect_plan("actions=0 event=none state=Running");
    cr_expect_null(scene.plan.status.training_class.name);
    json_free(defaults);
}
