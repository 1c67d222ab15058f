/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/push_intake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/memory.h"
#include "operator/controller/execute/push_report.h"

static void answer(struct push_answer *ret_answer, int status, const char *words)
{
    *ret_answer = (struct push_answer){.status = status};
    error_set(&ret_answer->words, ERROR_INVALID, "%s", words);
}

/* ---------------------------------------------------------------- who may report */

static bool has_successor(const struct job_entry *entry, const struct training_job *job, const struct pod_view *pod)
{
    for (size_t i = 0; i < entry->pod_count; i++) {
        struct pod_room room;
        struct pod_view other = pod_record_view(entry->pods[i], &room);
        if (other.member && pod_view_is_of(&other, job->uid) && other.role == pod->role && other.index == pod->index &&
            other.incarnation > pod->incarnation)
            return true;
    }
    return false;
}

/* A first crew may be created before the status says so: its attempt is higher than the status'. */
static bool find_sender(const struct job_entry *entry, const struct training_job *job, const char *name,
                        struct pod_room *room, struct pod_view *ret_pod)
{
    for (size_t i = 0; i < entry->pod_count; i++) {
        struct pod_view pod = pod_record_view(entry->pods[i], room);
        if (strcmp(pod.name, name) != 0 || !pod.member || !pod_view_is_of(&pod, job->uid))
            continue;
        *ret_pod = pod;
        bool is_present = pod.role == ROLE_EVALUATOR || pod.attempt >= job->status.attempt;
        return is_present && !has_successor(entry, job, &pod);
    }
    return false;
}

/* ---------------------------------------------------------------- rate */

static bool is_within_rate(struct job_entry *entry, int64_t now_ms, struct push_answer *ret_answer)
{
    if (entry->push_free_ms < now_ms)
        entry->push_free_ms = now_ms;
    int64_t ahead_ms = entry->push_free_ms - now_ms;
    if (ahead_ms <= (PUSH_BURST - 1) * PUSH_INTERVAL_MS) {
        entry->push_free_ms += PUSH_INTERVAL_MS;
        return true;
    }
    answer(ret_answer, 429, "this job reports more often than once a second; send fewer reports");
    ret_answer->retry_after_s = 1;
    return false;
}

/* ---------------------------------------------------------------- the report */

static int64_t newest(int64_t value, int64_t earlier)
{
    return value == STATUS_UNKNOWN ? earlier : value;
}

/* Adds what an earlier report says that no status has yet. */
static void add_earlier(struct status_document *report, const struct status_document *earlier)
{
    report->step = newest(report->step, earlier->step);
    report->total_steps = newest(report->total_steps, earlier->total_steps);
    report->data_epoch = newest(report->data_epoch, earlier->data_epoch);
    report->percent = newest(report->percent, earlier->percent);
    for (unsigned i = 0; i < earlier->metric_count; i++)
        if (!status_document_metric(report, earlier->metrics[i].name))
            status_document_set_metric(report, earlier->metrics[i].name, earlier->metrics[i].value,
                                       earlier->metrics[i].step);
}

/* The status of an earlier attempt has another crew's step. */
static void add_steps(struct status_document *report, const struct training_job *job, int64_t attempt)
{
    int64_t step = report->step;
    if (step == STATUS_UNKNOWN && attempt == job->status.attempt && job->status.progress.step != FIELD_UNSET)
        step = job->status.progress.step;
    for (unsigned i = 0; i < report->metric_count && step > 0; i++)
        if (report->metrics[i].step <= 0)
            report->metrics[i].step = step;
}

static bool is_unrecorded(const struct job_entry *entry)
{
    return entry->document && (entry->document_fresh || entry->document_planned);
}

static void keep(struct job_entry *entry, const struct training_job *job, const struct pod_view *pod,
                 const struct status_document *report)
{
    if (!entry->document)
        entry->document = memory_allocate(1, sizeof *entry->document);
    *entry->document = *report;
    snprintf(entry->document->job_uid, sizeof entry->document->job_uid, "%s", job->uid);
    entry->document->phase = STATUS_TRAINING;
    free(entry->document_pod);
    entry->document_pod = memory_copy_string(pod->uid);
    entry->document_fresh = true;
}

static void keep_crews(struct job_entry *entry, const struct training_job *job, const struct pod_view *pod,
                       struct status_document *report)
{
    if (is_unrecorded(entry) && (entry->document_is_evaluators || entry->push_attempt == pod->attempt))
        add_earlier(report, entry->document);
    add_steps(report, job, pod->attempt);
    report->updated_at_ms = clock_now_ms();
    keep(entry, job, pod, report);
    entry->push_attempt = pod->attempt;
    entry->document_is_evaluators = false;
}

/* Leaves only the metrics; the rest of the status stays the crew's, with the time of its newest report. */
static void take_metrics(struct status_document *report, const struct training_job *job)
{
    int64_t seconds = job->status.progress.seconds_remaining;
    report->step = report->total_steps = report->data_epoch = report->percent = STATUS_UNKNOWN;
    report->updated_at_ms = STATUS_UNKNOWN;
    report->seconds_remaining = seconds == FIELD_UNSET ? STATUS_UNKNOWN : seconds;
}

static void keep_evaluators(struct job_entry *entry, const struct training_job *job, const struct pod_view *pod,
                            struct status_document *report)
{
    bool adds = is_unrecorded(entry) && (entry->document_is_evaluators || !job_entry_sent_before(entry, job));
    add_steps(report, job, job->status.attempt);
    take_metrics(report, job);
    if (adds) {
        add_earlier(report, entry->document);
        report->seconds_remaining = entry->document->seconds_remaining;
        report->updated_at_ms = entry->document->updated_at_ms;
    }
    entry->document_is_evaluators = !adds || entry->document_is_evaluators;
    keep(entry, job, pod, report);
}

static int64_t take_report(struct progress_pace *pace, struct job_entry *entry, const struct training_job *job,
                           const struct pod_view *pod, const char *body, size_t length, struct push_answer *ret_answer)
{
    struct status_document report;
    struct error flaw, error = ERROR_INIT;
    if (push_report_read(body, length, &report, &flaw, &error) < 0) {
        answer(ret_answer, error.kind == ERROR_TOO_LARGE ? 413 : 400, error.message);
        return PLAN_NEVER;
    }
    answer(ret_answer, 200, flaw.kind == ERROR_NONE ? "reported" : flaw.message);
    bool by_evaluator = pod->role == ROLE_EVALUATOR;
    bool says_something = status_document_has_progress(&report) || report.seconds_remaining != STATUS_UNKNOWN;
    if (by_evaluator ? report.metric_count == 0 : !says_something)
        return PLAN_NEVER;
    if (by_evaluator)
        keep_evaluators(entry, job, pod, &report);
    else
        keep_crews(entry, job, pod, &report);
    int64_t now_ms = clock_now_ms();
    return progress_pace_is_turn(pace, &entry->poll_ms, now_ms) ? now_ms : entry->poll_ms;
}

int64_t push_intake_take(struct progress_pace *pace, struct job_entry *entry, const struct training_job *job,
                         const struct push_path *path, const char *body, size_t length, struct push_answer *ret_answer)
{
    struct pod_room room;
    struct pod_view pod;
    if (!job || strcmp(job->uid, path->uid) != 0)
        answer(ret_answer, 404, "this job is gone");
    else if (!push_is_wanted(job))
        answer(ret_answer, 409, "this job takes no reports; set progress.push in its section to true");
    else if (job->status.completion_ms != FIELD_UNSET)
        answer(ret_answer, 409, "this job has ended");
    else if (!find_sender(entry, job, path->pod, &room, &pod))
        answer(ret_answer, 409,
               "this pod has a successor, or is of an earlier attempt; only the present crew may report");
    else if (is_within_rate(entry, clock_monotonic_ms(), ret_answer))
        return take_report(pace, entry, job, &pod, body, length, ret_answer);
    return PLAN_NEVER;
}
