/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/push_intake.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "common/memory.h"
#include "operator/controller/execute/log_reader.h"
#include "tests/unit/operator/controller/execute/entry_scene.h"

#define REPORT "{\"trainerStatus\":{\"progressPercentage\":%d,\"metrics\":[{\"name\":\"%s\",\"value\":\"%g\"}]}}"

static struct job_entry *entry;
static struct training_job job;
static struct progress_pace pace;
static struct push_answer answer;

static void init(void)
{
    pace = (struct progress_pace){0};
    job = (struct training_job){.namespace = "default",
                                .name = "digits",
                                .uid = SCENE_JOB,
                                .framework = FRAMEWORK_PYTORCH,
                                .document.progress.push = true,
                                .status = {.attempt = 1,
                                           .completion_ms = FIELD_UNSET,
                                           .progress = {.step = FIELD_UNSET, .seconds_remaining = FIELD_UNSET}}};
    entry = entry_scene_begin();
}

static void fini(void)
{
    entry_scene_end(entry);
}

TestSuite(push_intake, .init = init, .fini = fini);

static void add_pod_of(enum role role, const char *name, const char *owner, int64_t index, int64_t incarnation,
                       int64_t attempt)
{
    const struct entry_pod pod = {
        .uid = name, .owner = owner, .role = role, .index = index, .incarnation = incarnation, .attempt = attempt};
    entry_scene_add(entry, &pod);
}

static void add_pod(const char *name, const char *owner, int64_t index, int64_t incarnation, int64_t attempt)
{
    add_pod_of(ROLE_WORKER, name, owner, index, incarnation, attempt);
}

static int send_text(const char *pod, const char *text)
{
    struct push_path path = {.name_space = "default", .job = "digits"};
    snprintf(path.uid, sizeof path.uid, SCENE_JOB);
    snprintf(path.pod, sizeof path.pod, "%s", pod);
    push_intake_take(&pace, entry, &job, &path, text, strlen(text), &answer);
    return answer.status;
}

static int send(const char *pod, int percent, const char *metric, double value)
{
    SCOPED_FREE char *text = memory_format(REPORT, percent, metric, value);
    return send_text(pod, text);
}

Test(push_intake, keeps_a_report_for_the_next_plan)
{
    add_pod("w0", SCENE_JOB, 0, 1, 1);
    cr_assert_eq(send("w0", 20, "loss", 0.5), 200, "%s", answer.words.message);
    cr_assert(entry->document_fresh);
    cr_expect_eq(entry->document->percent, 20);
    cr_expect_str_eq(entry->document->metrics[0].name, "loss");
    cr_expect_str_eq(entry->document_pod, "w0");
}

Test(push_intake, adds_to_a_report_that_no_plan_has_seen)
{
    add_pod("w0", SCENE_JOB, 0, 1, 1);
    send("w0", 20, "loss", 0.5);
    send("w0", 30, "bleu", 27);
    cr_assert_eq(entry->document->metric_count, 2);
    cr_expect_eq(entry->document->percent, 30);
    entry->document_fresh = false; /* a plan has, and writes it */
    entry->document_planned = true;
    send("w0", 40, "loss", 0.25);
    cr_expect_eq(entry->document->metric_count, 2);
    entry->document_fresh = entry->document_planned = false; /* it is written */
    send("w0", 50, "loss", 0.125);
    cr_expect_eq(entry->document->metric_count, 1);
}

Test(push_intake, any_pod_of_the_present_crew_may_report_and_no_other)
{
    add_pod("w0-1", SCENE_JOB, 0, 1, 1);
    add_pod("w0-3", SCENE_JOB, 0, 3, 2);
    add_pod("w1-3", SCENE_JOB, 1, 3, 2);
    add_pod("w2-2", SCENE_JOB, 2, 2, 1);
    add_pod("foreign", "job-uid-2", 5, 9, 9);
    job.status.attempt = 2;
    cr_expect_eq(send("w0-3", 1, "a", 1), 200);
    cr_expect_eq(send("w1-3", 1, "a", 1), 200);
    cr_expect_eq(send("w0-1", 1, "a", 1), 409, "it has a successor");
    cr_expect_eq(send("w2-2", 1, "a", 1), 409, "it is of an earlier attempt");
    cr_expect_eq(send("foreign", 1, "a", 1), 409);
    cr_expect_eq(send("unknown", 1, "a", 1), 409);
}

static void expect_metric(const char *name, double value, int64_t step)
{
    const struct status_metric *metric = status_document_metric(entry->document, name);
    cr_assert_not_null(metric, "%s", name);
    cr_expect_eq(metric->value, value);
    cr_expect_eq(metric->step, step, "%s: step %lld", name, (long long)metric->step);
}

#define WITH_STEP "{\"trainerStatus\":{\"metrics\":[{\"name\":\"%s\",\"value\":%d},{\"name\":\"step\",\"value\":%d}]}}"

static int send_step(const char *pod, const char *metric, int value, int step)
{
    SCOPED_FREE char *text = memory_format(WITH_STEP, metric, value, step);
    return send_text(pod, text);
}

Test(push_intake, a_metric_without_a_step_has_the_newest_that_is_known)
{
    add_pod("w0", SCENE_JOB, 0, 1, 1);
    send_step("w0", "loss", 3, 990);
    send("w0", 100, "train_loss", 2);
    expect_metric("loss", 3, 990);
    expect_metric("train_loss", 2, 990);
    entry->document_fresh = false; /* the status has it */
    job.status.progress.step = 990;
    send("w0", 100, "bleu", 27);
    expect_metric("bleu", 27, 990);
    entry->document_fresh = false;
    job.status.attempt = 0; /* the next crew is ahead of the status */
    send("w0", 100, "bleu", 28);
    expect_metric("bleu", 28, 0);
}

/* The crew of attempt 1 has started over; its evaluator goes on. */
static void start_over_with_evaluator(void)
{
    add_pod("w0", SCENE_JOB, 0, 3, 2);
    add_pod_of(ROLE_EVALUATOR, "e0", SCENE_JOB, 0, 1, 1);
    job.status.attempt = 2;
    entry->push_attempt = 1;
}

Test(push_intake, an_evaluator_may_report_after_its_crew_has_started_over)
{
    start_over_with_evaluator();
    cr_assert_eq(send_step("e0", "accuracy", 1, 700), 200, "%s", answer.words.message);
    expect_metric("accuracy", 1, 700);
    cr_expect(entry->document_fresh);
    cr_expect(entry->document_is_evaluators);
    cr_expect_eq(entry->push_attempt, 1, "the crew of attempt 2 has sent none");
    cr_expect_eq(entry->document->step, STATUS_UNKNOWN, "the step is the crew's");
    cr_expect_eq(entry->document->updated_at_ms, STATUS_UNKNOWN);
    cr_expect_eq(send_text("e0", "{\"trainerStatus\":{\"progressPercentage\":5}}"), 200);
    cr_expect_eq(entry->document->percent, STATUS_UNKNOWN);
}

Test(push_intake, the_metrics_of_an_evaluator_are_added_to_the_crews)
{
    start_over_with_evaluator();
    send_step("e0", "accuracy", 1, 700);
    send_step("w0", "loss", 3, 990);
    expect_metric("accuracy", 1, 700);
    expect_metric("loss", 3, 990);
    cr_expect_not(entry->document_is_evaluators);
    int64_t updated_ms = entry->document->updated_at_ms;
    send_step("e0", "accuracy", 2, 800);
    expect_metric("accuracy", 2, 800);
    expect_metric("loss", 3, 990);
    cr_expect_eq(entry->document->step, 990);
    cr_expect_eq(entry->document->updated_at_ms, updated_ms);
    cr_expect_not(entry->document_is_evaluators, "the crew's step is new, too");
    cr_expect_eq(entry->push_attempt, 2);
}

Test(push_intake, a_pod_may_be_ahead_of_the_status)
{
    add_pod("w0", SCENE_JOB, 0, 1, 1);
    job.status.attempt = 0;
    cr_expect_eq(send("w0", 1, "a", 1), 200);
}

Test(push_intake, a_job_must_be_there_and_train_and_want_it)
{
    struct push_path path = {.uid = "job-uid-0", .pod = "w0"};
    add_pod("w0", SCENE_JOB, 0, 1, 1);
    cr_expect_eq(push_intake_take(&pace, entry, &job, &path, "{}", 2, &answer), PLAN_NEVER);
    cr_expect_eq(answer.status, 404);
    push_intake_take(&pace, NULL, NULL, &path, "{}", 2, &answer);
    cr_expect_eq(answer.status, 404);
    job.document.progress.push = false;
    cr_expect_eq(send("w0", 1, "a", 1), 409);
    job.document.progress.push = true;
    job.status.completion_ms = 1000;
    cr_expect_eq(send("w0", 1, "a", 1), 409);
    cr_expect_null(entry->document);
}

Test(push_intake, what_cannot_be_read_changes_nothing)
{
    add_pod("w0", SCENE_JOB, 0, 1, 1);
    cr_expect_eq(send_text("w0", "{"), 400);
    cr_expect_eq(send_text("w0", "{}"), 200);
    cr_expect_null(entry->document);
}

Test(push_intake, more_than_the_burst_must_wait)
{
    add_pod("w0", SCENE_JOB, 0, 1, 1);
    for (int i = 0; i < PUSH_BURST; i++)
        cr_assert_eq(send("w0", i, "a", 1), 200);
    cr_expect_eq(send("w0", 99, "a", 1), 429);
    cr_expect_eq(answer.retry_after_s, 1);
    entry->push_free_ms -= PUSH_INTERVAL_MS; /* a second later */
    cr_expect_eq(send("w0", 99, "a", 1), 200);
    cr_expect_eq(send("w0", 99, "a", 1), 429);
}

Test(push_intake, a_sent_report_ends_the_reading_of_the_log)
{
    add_pod("w0", SCENE_JOB, 0, 1, 1);
    job.document.progress.log_pattern_count = 1;
    struct pod_record *pod = (struct pod_record *)(uintptr_t)entry->pods[0];
    struct pod_room room;
    struct pod_view ended = pod_record_view(pod, &room);
    ended.phase = POD_SUCCEEDED;
    struct pod_record *after = pod_record_new(&ended);
    job_entry_change_pod(entry, pod, after);
    cr_expect_neq(log_reader_unread_since(entry, &job, 5), FIELD_UNSET);
    free(pod);
    cr_assert_eq(send("w0", 1, "a", 1), 200);
    cr_expect_eq(log_reader_unread_since(entry, &job, 5), FIELD_UNSET);
    job.status.attempt = 2;
    cr_expect_neq(log_reader_unread_since(entry, &job, 5), FIELD_UNSET);
}
