/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/unit/operator/controller/plan/scene.h"

/* Two workers and a server that run; then another operator comes, which refuses the spec. */
SCENE_SUITE(invalid)
{
    scene_init(&scene, 2);
    scene.job.roles[ROLE_PS].count = 1;
    scene_turn(&scene);
    for (int64_t i = 0; i < 2; i++)
        scene_add_pod(&scene, ROLE_WORKER, i, 1);
    scene_add_pod(&scene, ROLE_PS, 0, 1);
    scene_turn(&scene);
    scene.input.invalid = "spec.coxswain.optimizer.momentum: AdamW has none; leave it out";
}

static unsigned events_of(const char *reason)
{
    unsigned count = 0;
    for (size_t i = 0; i < scene.plan.event_count; i++)
        count += strcmp(scene.plan.events[i].reason, reason) == 0;
    return count;
}

Test(invalid, a_job_that_runs_goes_on_and_says_why_nothing_will_be_created)
{
    expect_plan("actions=0 Running:True=CrewComplete");
    cr_assert_eq(scene.plan.status.conditions[CONDITION_FAILED].status, CONDITION_ABSENT);
    cr_assert_str_eq(scene_reason(&scene, CONDITION_SCHEDULED, CONDITION_FALSE), "InvalidSpec");
    const char *message = scene.plan.status.conditions[CONDITION_SCHEDULED].message;
    cr_assert_not_null(strstr(message, "AdamW has none; leave it out"), "%s", message);
    cr_assert_eq(events_of("InvalidSpec"), 1);
    scene_accept(&scene);
    scene_plan(&scene);
    cr_assert_eq(events_of("InvalidSpec"), 0, "it is told once");
}

Test(invalid, a_job_that_runs_can_succeed)
{
    scene_end_pod(&scene, &scene.pods[0], 0);
    scene_end_pod(&scene, &scene.pods[1], 0);
    scene.input.now_ms += 60000;
    expect_plan("Succeeded:True=ChiefSucceeded");
}

Test(invalid, a_lost_pod_is_counted_but_not_replaced_before_the_spec_is_accepted)
{
    scene_end_pod(&scene, &scene.pods[1], 137);
    expect_turn("job.restart_count=1");
    scene.pods[1].current = false;
    expect_turn("create_pod=0 Running:False=CrewIncomplete Scheduled:False=InvalidSpec");
    scene.input.invalid = NULL; /* the operator was rolled back */
    expect_plan("create_pod=1");
}

Test(invalid, a_job_that_runs_can_be_suspended)
{
    scene.job.suspend = true;
    scene_turn(&scene);
    expect_plan("delete_pod=3");
}

/* The numbers of a spec that cannot be read tell nothing of the pods. */
Test(invalid, no_pod_is_ended_for_a_spec_that_cannot_be_read)
{
    scene.job.roles[ROLE_PS].count = FIELD_UNSET;
    expect_plan("actions=0");
    scene.job.document.workers = INT64_MIN;
    expect_plan("actions=0 workers=2");
    cr_assert_eq(scene.plan.status.conditions[CONDITION_FAILED].status, CONDITION_ABSENT);
}

Test(invalid, an_elastic_job_that_runs_can_shrink)
{
    scene.job.elastic.enabled = true;
    scene.job.elastic.min_workers = 1;
    scene.job.elastic.max_workers = 2;
    scene.job.document.workers = 1;
    expect_turn("workers=1");
    expect_plan("delete_pod=1");
}

Test(invalid, a_job_whose_pods_have_not_run_yet_ends)
{
    for (size_t i = 0; i < 3; i++) {
        scene.pods[i].ready = false;
        scene.pods[i].started_ms = FIELD_UNSET;
        scene.pods[i].phase = POD_PENDING;
    }
    scene.job.status.conditions[CONDITION_RUNNING].status = CONDITION_ABSENT;
    expect_plan("Failed:True=InvalidSpec");
}
