/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/progress_status.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/unit/operator/controller/plan/scene.h"

Test(progress_status, unknown_keeps_what_was_known)
{
    struct arena arena = {0};
    struct status_document document;
    status_document_init(&document);
    document.step = 1200;
    document.total_steps = 3000;
    document.metric_count = 1;
    snprintf(document.metrics[0].name, sizeof document.metrics[0].name, "loss");
    document.metrics[0].value = 0.03125;
    document.metrics[0].step = 1100;
    struct progress before = scene_no_progress();
    before.last_checkpoint_step = 1000;
    struct progress progress = progress_from_document(&document, &before, true, &arena);
    cr_assert_eq(progress.step, 1200);
    cr_assert_eq(progress.percent, 40);
    cr_assert_eq(progress.last_checkpoint_step, 1000);
    cr_assert_str_eq(progress.metrics[0].value, "0.03125");
    cr_assert_eq(progress.metrics[0].step, 1100);
    cr_assert_null(progress.goodput);
    progress_complete(&progress);
    cr_assert_eq(progress.step, 3000);
    cr_assert_eq(progress.percent, 100);
    cr_assert_eq(progress.seconds_remaining, 0);
    arena_release(&arena);
}

/* A script tests its model less often than it logs its loss. */
Test(progress_status, metrics_of_a_script_stay)
{
    struct arena arena = {0};
    struct status_document document;
    status_document_init(&document);
    document.metric_count = 2;
    document.metrics[0] = (struct status_metric){.name = "loss", .value = 0.5, .step = 9};
    document.metrics[1] = (struct status_metric){.name = "bleu", .value = 27.4};
    struct progress before = scene_no_progress();
    before.metric_count = 2;
    before.metrics[0] = (struct progress_metric){.name = "validationLoss", .value = "0.75", .step = 4};
    before.metrics[1] = (struct progress_metric){.name = "loss", .value = "2", .step = 4};
    struct progress progress = progress_from_document(&document, &before, false, &arena);
    cr_assert_eq(progress.metric_count, 3);
    cr_expect_str_eq(progress.metrics[0].value, "0.75");
    cr_expect_eq(progress.metrics[0].step, 4);
    cr_expect_str_eq(progress.metrics[1].value, "0.5");
    cr_expect_eq(progress.metrics[1].step, 9);
    cr_expect_str_eq(progress.metrics[2].name, "bleu");
    cr_expect_eq(progress_from_document(&document, &before, true, &arena).metric_count, 2);
    arena_release(&arena);
}

Test(progress_status, nobody_has_done_more_than_everything)
{
    struct arena arena = {0};
    struct status_document document;
    status_document_init(&document);
    document.step = INT64_C(9007199254740992); /* a hundred times that is no integer for an API server */
    document.total_steps = 1;
    struct progress before = scene_no_progress();
    cr_assert_eq(progress_from_document(&document, &before, true, &arena).percent, 100);
    arena_release(&arena);
}

SCENE_SUITE(progress_rest)
{
    scene_init_running(&scene, 2);
    scene.job.status.progress.step = 120;
    scene.job.status.progress.examples_per_second = "5123.4";
    scene.job.status.progress.seconds_remaining = 35;
}

static void assert_rests(void)
{
    cr_assert(scene.plan.write_status);
    cr_assert_null(scene.plan.status.progress.examples_per_second);
    scene_expect("progress.seconds_remaining=unset progress.step=120 (what was done is done)");
}

Test(progress_rest, a_crew_that_runs_has_its_pace)
{
    expect_plan("write_status=0");
    cr_assert_str_eq(scene.plan.status.progress.examples_per_second, "5123.4");
    cr_assert_eq(scene.plan.status.progress.seconds_remaining, 35);
}

Test(progress_rest, a_crew_that_restarts_has_none)
{
    scene_end_pod(&scene, &scene.pods[1], 137);
    expect_plan("state=Restarting");
    assert_rests();
    scene_accept(&scene);
    expect_plan("write_status=0 (it is told with what stopped the crew)");
}

Test(progress_rest, what_a_chief_tells_while_another_is_missing_is_no_pace)
{
    struct progress told = scene.job.status.progress;
    scene.pods[1].ready = false;
    scene.input.progress = &told;
    scene.input.progress_due = true;
    expect_plan("state=Scheduled");
    assert_rests();
}

Test(progress_rest, a_job_that_is_suspended_has_none)
{
    scene.job.suspend = true;
    expect_plan("Suspended:False=Suspending");
    assert_rests();
}

Test(progress_rest, a_job_that_failed_has_none)
{
    scene_end_pod(&scene, &scene.pods[0], 70);
    expect_plan("state=Failed");
    assert_rests();
}

Test(progress_rest, a_job_that_succeeded_keeps_what_it_had)
{
    scene_end_pod(&scene, &scene.pods[0], 0);
    scene_end_pod(&scene, &scene.pods[1], 0);
    scene.job.status.progress.total_steps = 130;
    expect_plan("state=Succeeded");
    cr_assert_str_eq(scene.plan.status.progress.examples_per_second, "5123.4");
    scene_expect("progress.seconds_remaining=0 progress.step=130");
}

/* Not every script that sends its progress counts steps. */
Test(progress_status, a_percentage_that_a_script_sends_counts)
{
    struct arena arena = {0};
    struct status_document document;
    status_document_init(&document);
    document.percent = 30;
    struct progress before = scene_no_progress();
    struct progress progress = progress_from_document(&document, &before, false, &arena);
    cr_expect_eq(progress.percent, 30);
    cr_expect(progress_moved(&before, &progress));
    status_document_init(&document);
    document.step = 5;
    struct progress later = progress_from_document(&document, &progress, false, &arena);
    cr_expect_eq(later.percent, 30, "without a number of steps it stays");
    document.total_steps = 50;
    cr_expect_eq(progress_from_document(&document, &later, false, &arena).percent, 10);
    document.percent = 99;
    cr_expect_eq(progress_from_document(&document, &later, false, &arena).percent, 99);
    arena_release(&arena);
}
