/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "common/utf8.h"

#include "tests/unit/operator/controller/plan/scene.h"

SCENE_SUITE(conditions)
{
    scene_init_running(&scene, 2);
}

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

Test(conditions, what_the_scheduler_says_of_any_pod_stands_there)
{
    for (int i = 0; i < 2; i++) {
        scene.pods[i].ready = scene.pods[i].scheduled = false;
        scene.pods[i].phase = POD_PENDING;
    }
    expect_plan("Scheduled:False=Pending");
    scene.pods[1].unschedulable = "0/3 nodes are available";
    expect_plan("Scheduled:False=Unschedulable (though worker 0 would find one)");
    cr_assert_str_eq(scene.plan.status.conditions[CONDITION_SCHEDULED].message, "0/3 nodes are available");
}

Test(conditions, a_chief_that_is_not_heard_is_named_with_the_usual_cause)
{
    scene.job.status.progress.examples_per_second = "5123.4";
    scene.input.chief_voice = CHIEF_SILENT;
    expect_plan("Running:True=CrewComplete");
    cr_assert_str_eq(scene.plan.status.conditions[CONDITION_RUNNING].message,
                     "all required pods are ready; worker 0 does not answer on port 8080, so its progress is "
                     "unknown: check whether a NetworkPolicy blocks the operator");
    cr_assert_null(scene.plan.status.progress.examples_per_second, "nobody knows");
    scene_accept(&scene);
    expect_plan("write_status=0 (said once)");
    scene.input.chief_voice = CHIEF_STRANGE;
    scene_plan(&scene);
    cr_assert_str_eq(
        scene.plan.status.conditions[CONDITION_RUNNING].message,
        "all required pods are ready; worker 0 answers on port 8080, but not with the status of this job, so "
        "its progress is unknown: check whether its image is a worker of another version");
    cr_assert_null(scene.plan.status.progress.examples_per_second);
    scene.input.chief_voice = CHIEF_HEARD;
    scene_plan(&scene);
    cr_assert_str_eq(scene.plan.status.conditions[CONDITION_RUNNING].message, "all required pods are ready");
}

Test(conditions, a_restart_stands_there_while_the_crew_runs_without_the_pod)
{
    scene.job.roles[ROLE_EVALUATOR].count = 1;
    scene_end_pod(&scene, scene_add_pod(&scene, ROLE_EVALUATOR, 0, 1), 139);
    expect_turn("Running:True=CrewComplete Restarting:True=PodFailed state=Running");
    expect_plan("Restarting:True=PodFailed (nobody is there yet)");
    struct pod_view *successor = scene_add_pod(&scene, ROLE_EVALUATOR, 0, 2);
    successor->ready = false;
    expect_plan("Restarting:True=PodFailed (nor ready)");
    successor->ready = true;
    expect_plan("Restarting:False=CrewComplete");
}

Test(conditions, an_elastic_crew_that_goes_on_reports_a_replaced_worker)
{
    scene.job.elastic.enabled = true;
    scene.job.elastic.min_workers = 1;
    scene_end_pod(&scene, &scene.pods[1], 137);
    scene.pods[1].end_reason = "OOMKilled";
    expect_plan("Running:True=CrewSufficient Restarting:True=OutOfMemory");
}

Test(conditions, a_pod_that_was_late_from_the_beginning_is_not_restarting)
{
    scene.job.elastic.enabled = true;
    scene.job.elastic.min_workers = 1;
    scene.pods[1].ready = false; /* no node has room */
    scene_end_pod(&scene, &scene.pods[0], 137);
    expect_turn("Restarting:True=PodFailed");
    scene.list[0] = scene_add_pod(&scene, ROLE_WORKER, 0, 2);
    scene.input.pod_count = 2;
    expect_plan("Restarting:False=CrewSufficient");
}

static void be_elastic(void)
{
    scene.job.elastic = (struct elastic_spec){.enabled = true, .min_workers = 1, .max_workers = 4};
}

/* The pod of worker `index` fails, and its successor comes; it is not ready where no node has room. */
static void replace(int64_t index, bool ready)
{
    for (size_t i = 0; i < scene.pod_count; i++)
        if (&scene.pods[i] == scene.list[index])
            scene_end_pod(&scene, &scene.pods[i], 137);
    scene_turn(&scene);
    struct pod_view *successor = scene_add_pod(&scene, ROLE_WORKER, index, scene.job.status.incarnation);
    scene.list[index] = successor;
    scene.input.pod_count = 2;
    successor->ready = ready;
    scene_turn(&scene);
}

/* Nobody of the first crew is left to compare with. */
Test(conditions, a_restart_does_not_end_when_another_one_does)
{
    be_elastic();
    replace(1, false);
    replace(0, true);
    scene_expect(
        "Running:True=CrewSufficient Restarting:True=PodFailed (worker 1 is not back) job.worker.restarting=1");
    scene.pods[2].ready = true;
    expect_plan("Restarting:False=CrewComplete worker.restarting=none");
}

Test(conditions, a_newcomer_for_whom_there_is_no_room_is_not_restarting)
{
    be_elastic();
    replace(1, false);
    scene.job.document.workers = 3;
    scene_turn(&scene);
    struct pod_view *newcomer = scene_add_pod(&scene, ROLE_WORKER, 2, scene.job.status.incarnation);
    scene.list[2] = newcomer;
    scene.input.pod_count = 3;
    newcomer->ready = false;
    expect_turn("Restarting:True=PodFailed");
    scene.pods[2].ready = true;
    expect_plan("Restarting:False=CrewSufficient");
}

Test(conditions, a_crew_that_starts_over_is_restarting_until_all_its_pods_are_back)
{
    be_elastic();
    scene.job.run_policy.restart_scope = RESTART_SCOPE_JOB;
    scene_end_pod(&scene, &scene.pods[0], 137);
    expect_turn("job.worker.restarting=0-1");
    scene.list[0] = scene_add_pod(&scene, ROLE_WORKER, 0, 2);
    scene.list[1] = scene_add_pod(&scene, ROLE_WORKER, 1, 2);
    scene.pods[3].ready = false;
    scene.input.pod_count = 2;
    expect_turn("Running:True=CrewSufficient job.worker.restarting=1 Restarting:True=PodFailed");
    scene.job.suspend = true;
    expect_plan("worker.restarting=none (all of them are sent away)");
}

/* It would come back from the API server with another character in its place, and seem not to have been written. */
Test(conditions, a_message_is_cut_between_characters)
{
    char words[CONDITION_MESSAGE_MAX + 4] = {0};
    for (size_t at = 0; at < CONDITION_MESSAGE_MAX; at += 3)
        memcpy(words + at, "\xe5\xad\x97", 3);
    scene.pods[1].ready = false;
    scene.input.crew_message = words;
    scene_plan(&scene);
    const char *message = scene.plan.status.conditions[CONDITION_RUNNING].message;
    cr_assert(strlen(message) <= CONDITION_MESSAGE_MAX && strlen(message) > CONDITION_MESSAGE_MAX - 4);
    for (const char *at = message; *at; at += utf8_sequence(at, strlen(at)))
        cr_assert(utf8_sequence(at, strlen(at)) > 0, "at %zu", (size_t)(at - message));
}
