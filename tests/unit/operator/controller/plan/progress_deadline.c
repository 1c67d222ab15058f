/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/progress_deadline.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/operator/controller/plan/scene.h"

#define DEADLINE_MS 100000

static struct progress told;

/* A PyTorch job of two pods that has run from SCENE_NOW on; the operator has read its log once. */
SCENE_SUITE(progress_deadline)
{
    scene_init_running(&scene, 2);
    scene.job.framework = FRAMEWORK_PYTORCH;
    scene.job.run_policy.progress_deadline_seconds = DEADLINE_MS / 1000;
    scene.input.log.unread_since_ms = FIELD_UNSET;
    scene.input.answers = (struct answers_input){.asked_ms = SCENE_NOW, .since_ms = SCENE_NOW, .found = true};
    told = scene_no_progress();
}

/* The operator asks at that time, and is told that step, as one that the last plan did not know. */
static void tell_step(int64_t at_ms, int64_t step)
{
    told.step = step;
    told.total_steps = 400;
    scene.input.progress = &told;
    scene.input.progress_due = true;
    scene.input.answers.asked_ms = scene.input.now_ms = SCENE_NOW + at_ms;
}

/* It asks at that time and finds nothing new. */
static void look(int64_t at_ms)
{
    scene.input.progress = NULL;
    scene.input.progress_due = false;
    scene.input.answers.asked_ms = scene.input.now_ms = SCENE_NOW + at_ms;
}

static int64_t counts_from_ms(void)
{
    int64_t from_ms = scene.plan.status.progressed_ms;
    return from_ms == FIELD_UNSET ? FIELD_UNSET : from_ms - SCENE_NOW;
}

static const char *restarting(void)
{
    return scene_reason(&scene, CONDITION_RESTARTING, CONDITION_TRUE);
}

#define expect_alone() expect_turn("attempt=1 failures=0 Restarting:True= Failed:True=")

/* The status says when the crew began; the crew made step 120 after 30 seconds. */
static void run_to_step(void)
{
    scene_turn(&scene);
    tell_step(30000, 120);
    expect_alone();
    cr_assert_eq(counts_from_ms(), 30000);
}

Test(progress_deadline, the_message_says_whom_the_chief_waits_for)
{
    run_to_step();
    look(30000 + DEADLINE_MS);
    scene.input.crew_message = "waiting for rank 1 (worker 1, 10.0.0.7:2223) in the all-reduce of step 121";
    expect_turn("event=ProgressDeadlineExceeded");
    cr_expect(strstr(scene.plan.events[0].note, "step 120 of 400; the chief reports: waiting for rank 1 (worker 1, "
                                                "10.0.0.7:2223) in the all-reduce of step 121; pods that ran: "),
              "%s", scene.plan.events[0].note);
}

Test(progress_deadline, a_crew_that_waits_at_a_rung_of_its_sweep_may_wait_longer)
{
    scene.job.pause_step = 120;
    scene_turn(&scene);
    tell_step(30000, 120);
    expect_alone();
    cr_expect_eq(counts_from_ms(), FIELD_UNSET);
    look(3600000 + DEADLINE_MS);
    expect_alone();
    scene.job.pause_step = 240;
    expect_alone();
    cr_expect_eq(counts_from_ms(), 3600000 + DEADLINE_MS);
}

Test(progress_deadline, a_crew_without_a_new_step_starts_over)
{
    run_to_step();
    look(30000 + DEADLINE_MS - 1);
    expect_alone();
    cr_expect_eq(scene.plan.requeue_ms, SCENE_NOW + 30000 + DEADLINE_MS);
    look(30000 + DEADLINE_MS);
    expect_turn("attempt=2 incarnation=2 failures=1 restart_count=1 worker.pending=0-1 delete_pod=0 "
                "create_pod=0 write_status=1 event=ProgressDeadlineExceeded Restarting:True=ProgressDeadlineExceeded "
                "progress.step=unset");
    cr_expect_str_eq(scene.plan.status.conditions[CONDITION_RESTARTING].message,
                     "no new step for 100 s, and progressDeadlineSeconds is 100: the last one is step 120 of 400; pods "
                     "that ran: digits-worker-0-1, digits-worker-1-1");
    cr_expect_eq(counts_from_ms(), FIELD_UNSET);
    expect_turn("delete_pod=2 attempt=2 failures=1 (decided before it is carried out)");
}

Test(progress_deadline, an_operator_that_is_killed_after_the_decision_counts_it_once)
{
    run_to_step();
    look(30000 + DEADLINE_MS);
    scene_turn(&scene);
    look(30000 + DEADLINE_MS + 5000); /* its successor, before the pods are gone */
    scene.input.answers.asked_ms = FIELD_UNSET;
    expect_turn("delete_pod=2 attempt=2 incarnation=2 failures=1 worker.pending=0-1");
    scene_end_pod(&scene, &scene.pods[0], 137);
    scene_end_pod(&scene, &scene.pods[1], 137);
    scene.input.now_ms += 3600000;
    expect_turn("attempt=2 failures=1");
}

Test(progress_deadline, the_time_to_the_first_step_counts_from_when_all_pods_run)
{
    scene.pods[1].started_ms = FIELD_UNSET;
    scene.pods[1].ready = false;
    look(5000);
    scene_turn(&scene);
    cr_assert_eq(counts_from_ms(), FIELD_UNSET);
    scene.pods[1].started_ms = SCENE_NOW + 20000;
    look(21000);
    scene_turn(&scene);
    cr_assert_eq(counts_from_ms(), 21000);
    look(20999 + DEADLINE_MS);
    expect_alone();
    look(21000 + DEADLINE_MS);
    expect_turn("attempt=2 Restarting:True=ProgressDeadlineExceeded");
    cr_expect(strstr(scene.plan.status.conditions[CONDITION_RESTARTING].message, "no step was reported at all"));
}

Test(progress_deadline, each_step_epoch_or_metric_begins_it_anew)
{
    run_to_step();
    tell_step(90000, 121);
    expect_alone();
    cr_expect_eq(counts_from_ms(), 90000);
    told.data_epoch = 1;
    tell_step(100000, 121);
    expect_alone();
    cr_expect_eq(counts_from_ms(), 100000);
    told.metrics[told.metric_count++] = (struct progress_metric){.name = "loss", .value = "0.5", .step = 121};
    tell_step(110000, 121);
    expect_alone();
    cr_expect_eq(counts_from_ms(), 110000);
    told.updated_at_ms = SCENE_NOW + 120000;
    told.seconds_remaining = 12;
    tell_step(120000, 121);
    expect_alone();
    cr_expect_eq(counts_from_ms(), 110000, "it repeats itself");
}

Test(progress_deadline, what_an_evaluator_reports_is_no_step_of_the_crew)
{
    run_to_step();
    told.metrics[told.metric_count++] = (struct progress_metric){.name = "accuracy", .value = "0.5", .step = 120};
    tell_step(90000, 120);
    scene.input.progress_is_evaluators = true;
    expect_alone();
    cr_expect_eq(counts_from_ms(), 30000);
    told.metrics[0].value = "0.625";
    tell_step(30000 + DEADLINE_MS, 120);
    expect_turn("attempt=2 Restarting:True=ProgressDeadlineExceeded");
}

Test(progress_deadline, a_step_that_comes_with_the_deadline_is_one)
{
    run_to_step();
    tell_step(30000 + DEADLINE_MS, 121);
    expect_alone();
    cr_expect_eq(counts_from_ms(), 30000 + DEADLINE_MS);
}

Test(progress_deadline, who_cannot_look_ends_nothing_and_says_so)
{
    run_to_step();
    scene.input.progress = NULL;
    scene.input.now_ms = SCENE_NOW + 30000 + DEADLINE_MS + PROGRESS_DEADLINE_BLIND_MS - 1;
    expect_alone();
    cr_expect_eq(scene.plan.requeue_ms, scene.input.now_ms + 1);
    cr_expect_str_eq(scene.plan.status.conditions[CONDITION_RUNNING].message, "all required pods are ready");
    scene.input.now_ms++;
    expect_alone();
    cr_expect_str_eq(
        scene.plan.status.conditions[CONDITION_RUNNING].message,
        "all required pods are ready; progressDeadlineSeconds has passed, but the operator cannot see whether "
        "there was a new step, so it does not restart the crew");
    scene.input.now_ms += 3600000;
    expect_alone();
    scene.input.answers.asked_ms = scene.input.now_ms;
    expect_turn("attempt=2 Restarting:True=ProgressDeadlineExceeded");
}

Test(progress_deadline, a_successor_of_the_operator_looks_first)
{
    run_to_step();
    scene.input.progress = NULL;
    scene.input.answers = (struct answers_input){.asked_ms = FIELD_UNSET, .since_ms = FIELD_UNSET};
    scene.input.now_ms = SCENE_NOW + 30000 + 10 * DEADLINE_MS;
    expect_alone();
    scene.input.answers = (struct answers_input){.since_ms = scene.input.now_ms};
    tell_step(30000 + 10 * DEADLINE_MS, 900);
    expect_alone();
    cr_expect_eq(counts_from_ms(), 30000 + 10 * DEADLINE_MS);
}

Test(progress_deadline, a_successor_that_finds_the_old_step_does_not_begin_anew)
{
    run_to_step();
    look(30000 + DEADLINE_MS + 5000);
    scene.input.answers.since_ms = scene.input.now_ms;
    expect_turn("attempt=2 Restarting:True=ProgressDeadlineExceeded");
}

Test(progress_deadline, a_successor_that_finds_nothing_waits_for_the_whole_time)
{
    run_to_step();
    look(200000);
    scene.input.answers.since_ms = SCENE_NOW + 150000;
    scene.input.answers.found = false;
    expect_alone();
    look(150000 + DEADLINE_MS - 1);
    expect_alone();
    look(150000 + DEADLINE_MS);
    expect_turn("attempt=2 Restarting:True=ProgressDeadlineExceeded");
}

Test(progress_deadline, the_limit_ends_the_job_with_the_reason)
{
    scene.job.run_policy.backoff_limit = 0;
    run_to_step();
    look(30000 + DEADLINE_MS);
    expect_turn("attempt=1 failures=1 Failed:True=ProgressDeadlineExceeded event=ProgressDeadlineExceeded "
                "Restarting:True=");
    cr_expect(strstr(scene.plan.status.conditions[CONDITION_FAILED].message, "; backoffLimit 0 exceeded"));
    cr_expect_eq(counts_from_ms(), FIELD_UNSET);
}

Test(progress_deadline, a_pod_that_has_ended_is_judged_instead)
{
    run_to_step();
    look(30000 + DEADLINE_MS);
    scene_end_pod(&scene, &scene.pods[1], 1);
    expect_turn("attempt=2 Restarting:True=PodFailed");
    cr_expect_eq(counts_from_ms(), FIELD_UNSET);
}

Test(progress_deadline, a_frozen_pod_may_fail_its_probe)
{
    run_to_step();
    scene.pods[1].ready = false;
    look(30000 + DEADLINE_MS);
    expect_turn("attempt=2 Restarting:True=ProgressDeadlineExceeded");
}

Test(progress_deadline, stands_still_while_suspended)
{
    run_to_step();
    scene.job.suspend = true;
    look(30000 + DEADLINE_MS);
    scene_turn(&scene);
    cr_expect_str_eq(restarting(), "");
    cr_expect_eq(counts_from_ms(), FIELD_UNSET);
}

Test(progress_deadline, leaves_out_by_how_much_the_clock_was_set)
{
    run_to_step();
    scene.input.moved_ms[STATUS_TIME_PROGRESSED] = 3600000;
    look(3600000 + 30000 + DEADLINE_MS - 1);
    expect_alone();
    look(3600000 + 30000 + DEADLINE_MS);
    expect_turn("attempt=2 Restarting:True=ProgressDeadlineExceeded");
}

/* As in a collective operation at the very end, which the others never leave. */
Test(progress_deadline, the_chief_has_finished_and_another_hangs)
{
    run_to_step();
    scene_end_pod(&scene, &scene.pods[0], 0);
    scene.input.now_ms = SCENE_NOW + 30000 + DEADLINE_MS;
    scene.input.progress = NULL;
    scene.input.log.unread_since_ms = scene.input.now_ms;
    expect_alone();
    scene.input.log.unread_since_ms = FIELD_UNSET;
    expect_turn("attempt=2 Restarting:True=ProgressDeadlineExceeded");
    cr_expect(strstr(scene.plan.status.conditions[CONDITION_RESTARTING].message, "pods that ran: digits-worker-1-1"));
}

Test(progress_deadline, an_elastic_crew_needs_no_more_than_its_minimum)
{
    scene.job.elastic = (struct elastic_spec){.enabled = true, .min_workers = 1, .max_workers = 2};
    scene.pods[1].started_ms = FIELD_UNSET;
    scene.pods[1].ready = false;
    look(0);
    scene_turn(&scene);
    cr_assert_eq(counts_from_ms(), 0);
    look(DEADLINE_MS);
    expect_turn("attempt=2 Restarting:True=ProgressDeadlineExceeded");
}

Test(progress_deadline, without_the_field_there_is_none)
{
    scene.job.run_policy.progress_deadline_seconds = FIELD_UNSET;
    scene_turn(&scene);
    cr_expect_eq(counts_from_ms(), FIELD_UNSET);
    look(1000 * DEADLINE_MS);
    expect_alone();
}

Test(progress_deadline, our_own_worker_has_it_too)
{
    scene.job.framework = FRAMEWORK_COXSWAIN;
    run_to_step();
    look(30000 + DEADLINE_MS);
    expect_turn("attempt=2 worker.pending=0-1 progress.step=120 Restarting:True=ProgressDeadlineExceeded");
}

Test(progress_deadline, crews_that_hang_again_and_again_start_later_each_time)
{
    scene_turn(&scene);
    look(DEADLINE_MS);
    expect_turn("attempt=2 backoff_until_ms=unset");
    scene.job.status.restarts.failures = scene.job.status.restart_count = 3;
    scene_renew();
    scene.job.status.restarts.failures = scene.job.status.restart_count = 2;
    scene_turn(&scene);
    look(DEADLINE_MS);
    scene_turn(&scene);
    cr_expect_geq(scene.plan.status.backoff_until_ms, scene.input.now_ms + 20000);
}
