/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/log_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log_pattern.h"
#include "common/memory.h"
#include "operator/controller/execute/log_report.h"
#include "operator/controller/execute/progress_answers.h"
#include "operator/controller/execute/progress_pace.h"
#include "operator/controller/objects/crew_roles.h"
#include "operator/controller/plan/crew.h"

#define TAIL_LINES "200"
#define KEPT_MAX 65536 /* bytes of the log's end that are searched */
#define TIMEOUT_MS 5000
#define RETRY_MS 1000   /* after a request that failed */
#define COSTLY_MS 60000 /* after a search that took LOG_WORK_MAX, and a part of it after one that took less */

struct log_reader {
    struct kube_client *client;
    progress_received *received;
    void *context;
    struct progress_pace pace;
};

/* A request for the log of one pod. */
struct log_request {
    struct log_reader *reader;
    struct job_entry *entry;
    char *uid, *pod; /* of the job, and of the pod */
    bool ended;      /* the pod had when it was asked */
    int64_t asked_ms;
    char *patterns[LOG_PATTERNS_MAX];
    unsigned pattern_count;
    struct buffer text; /* the newest KEPT_MAX bytes */
};

struct log_reader *log_reader_new(struct kube_client *client, progress_received *received, void *context)
{
    struct log_reader *reader = memory_allocate(1, sizeof *reader);
    reader->client = client;
    reader->received = received;
    reader->context = context;
    return reader;
}

void log_reader_free(struct log_reader *reader)
{
    free(reader);
}

static void request_free(struct log_request *request)
{
    for (unsigned i = 0; i < request->pattern_count; i++)
        free(request->patterns[i]);
    buffer_release(&request->text);
    free(request->uid);
    free(request->pod);
    free(request);
}

/* ---------------------------------------------------------------- the answer */

static bool same_values(const struct status_document *one, const struct status_document *other)
{
    if (one->step != other->step || one->total_steps != other->total_steps || one->data_epoch != other->data_epoch ||
        one->metric_count != other->metric_count)
        return false;
    for (unsigned i = 0; i < one->metric_count; i++)
        if (strcmp(one->metrics[i].name, other->metrics[i].name) != 0 ||
            one->metrics[i].value != other->metrics[i].value || one->metrics[i].step != other->metrics[i].step)
            return false;
    return true;
}

static bool pod_is_of_attempt(const struct job_entry *entry, const char *uid, int64_t attempt)
{
    for (size_t i = 0; i < entry->pod_count; i++) {
        struct pod_room room;
        struct pod_view pod = pod_record_view(entry->pods[i], &room);
        if (strcmp(pod.uid, uid) == 0)
            return pod.attempt == attempt;
    }
    return false;
}

/* Does nothing if the entry holds the same already. */
static void keep_report(const struct log_request *request, struct status_document *report)
{
    struct job_entry *entry = request->entry;
    bool known = entry->document && strcmp(entry->document_pod, request->pod) == 0;
    bool sent = entry->push_attempt > 0; /* while the log was on its way; or by an earlier attempt */
    if (!status_document_has_progress(report) || (known && same_values(entry->document, report)) ||
        (sent && pod_is_of_attempt(entry, request->pod, entry->push_attempt)))
        return;
    snprintf(report->job_uid, sizeof report->job_uid, "%s", request->uid);
    report->phase = STATUS_TRAINING;
    report->updated_at_ms = clock_now_ms();
    if (!entry->document)
        entry->document = memory_allocate(1, sizeof *entry->document);
    *entry->document = *report;
    free(entry->document_pod);
    entry->document_pod = memory_copy_string(request->pod);
    entry->document_fresh = true;
    entry->document_is_evaluators = false;
    entry->push_attempt = 0;
}

/* A flaw that differs from the last one is reported again. */
static void keep_flaw(struct job_entry *entry, const struct error *flaw)
{
    const char *words = flaw->kind == ERROR_NONE ? NULL : flaw->message;
    if (words && entry->log.flaw && strcmp(words, entry->log.flaw) == 0)
        return;
    free(entry->log.flaw);
    entry->log.flaw = words ? memory_copy_string(words) : NULL;
    entry->log.flaw_reported = false;
}

/* Whether the pod is noted as the chief that succeeded. */
static bool has_ended(const struct job_entry *entry, const char *uid)
{
    return entry->log.ended_pod && strcmp(entry->log.ended_pod, uid) == 0;
}

/* The pod may have been deleted meanwhile, and its crew started over. */
static bool pod_is_there(const struct job_entry *entry, const char *uid)
{
    for (size_t i = 0; i < entry->pod_count; i++) {
        struct pod_room room;
        struct pod_view pod = pod_record_view(entry->pods[i], &room);
        if (strcmp(pod.uid, uid) == 0)
            return !pod_view_deleting(&pod);
    }
    return false;
}

static void take_answer(struct log_request *request, const struct error *failure)
{
    struct job_entry *entry = request->entry;
    struct status_document report;
    struct error flaw = ERROR_INIT;
    if (failure) {
        error_set(&flaw, failure->kind, "its log could not be read: %s", failure->message);
        entry->log.turn_ms = clock_now_ms() + RETRY_MS;
    } else {
        const char *const *patterns = (const char *const *)request->patterns;
        const char *text = buffer_text(&request->text);
        int64_t work;
        if (log_report_read(patterns, request->pattern_count, text, request->text.length, &report, &work, &flaw) == 0) {
            progress_answers_note(entry, request->pod, request->asked_ms, status_document_has_progress(&report));
            keep_report(request, &report);
        }
        int64_t rested_ms = clock_now_ms() + work * COSTLY_MS / LOG_WORK_MAX;
        if (entry->log.turn_ms < rested_ms)
            entry->log.turn_ms = rested_ms;
    }
    keep_flaw(entry, &flaw);
    entry->log.ended_read |= !failure && has_ended(entry, request->pod) && request->ended;
}

static void answered(void *context, const struct kube_answer *answer)
{
    struct log_request *request = context;
    struct log_reader *reader = request->reader;
    struct job_entry *entry = request->entry;
    bool cancelled = answer->error && answer->error->kind == ERROR_CANCELLED;
    entry->log.call = NULL;
    if (!cancelled && job_entry_is_about(entry, request->uid) && pod_is_there(entry, request->pod))
        take_answer(request, answer->error);
    request_free(request);
    if (!cancelled)
        reader->received(reader->context, entry); /* also without news: the chief may have ended meanwhile */
}

static int received(void *context, const char *bytes, size_t length, struct error *error)
{
    struct log_request *request = context;
    if (length > KEPT_MAX) {
        bytes += length - KEPT_MAX;
        length = KEPT_MAX;
    }
    size_t room = KEPT_MAX - length;
    if (request->text.length > room)
        buffer_consume(&request->text, request->text.length - room);
    return buffer_append(&request->text, bytes, length, error);
}

/* ---------------------------------------------------------------- the request */

static int write_path(const char *key, const struct pod_view *pod, struct buffer *path, struct error *error)
{
    SCOPED_FREE char *name_space = memory_format("%.*s", (int)strcspn(key, "/"), key);
    struct resource_path log = {KUBE_PODS, name_space, pod->name, "log"};
    if (resource_path_append(path, &log, error) < 0 ||
        resource_path_append_query(path, "container", pod->container, error) < 0)
        return -1;
    return resource_path_append_query(path, "tailLines", TAIL_LINES, error);
}

static void ask(struct log_reader *reader, struct job_entry *entry, const struct training_job *job,
                const struct pod_view *pod)
{
    const struct progress_spec *spec = &job->document.progress;
    SCOPED_BUFFER path = BUFFER_INIT(KEPT_MAX);
    if (write_path(entry->key, pod, &path, NULL) < 0)
        return;
    struct log_request *request = memory_allocate(1, sizeof *request);
    *request = (struct log_request){.reader = reader,
                                    .entry = entry,
                                    .uid = memory_copy_string(job->uid),
                                    .pod = memory_copy_string(pod->uid),
                                    .ended = pod_view_ended(pod),
                                    .asked_ms = clock_now_ms(),
                                    .pattern_count = spec->log_pattern_count};
    for (unsigned i = 0; i < spec->log_pattern_count; i++)
        request->patterns[i] = memory_copy_string(spec->log_patterns[i]);
    buffer_init(&request->text, KEPT_MAX);
    struct kube_stream_options stream = {.path_and_query = buffer_text(&path),
                                         .resource = "pods",
                                         .timeout_ms = TIMEOUT_MS,
                                         .on_data = received,
                                         .answered = answered,
                                         .context = request};
    entry->log.call = kube_client_stream(reader->client, &stream);
}

static bool find_chief(const struct job_entry *entry, const struct training_job *job, struct pod_room *room,
                       struct pod_view *ret_chief)
{
    return job->framework != FRAMEWORK_COXSWAIN && job->document.progress.log_pattern_count > 0 &&
           !job_entry_has_sent(entry, job) && /* a report takes precedence */
           job_entry_find_pod(entry, job, crew_chief_role(job), room, ret_chief);
}

static bool is_unread(const struct job_entry *entry, const struct pod_view *chief)
{
    return pod_view_succeeded(chief) && !(has_ended(entry, chief->uid) && entry->log.ended_read);
}

int64_t log_reader_unread_since(struct job_entry *entry, const struct training_job *job, int64_t now_ms)
{
    struct pod_room room;
    struct pod_view chief;
    if (!find_chief(entry, job, &room, &chief) || !is_unread(entry, &chief))
        return FIELD_UNSET;
    if (!has_ended(entry, chief.uid)) {
        free(entry->log.ended_pod);
        entry->log.ended_pod = memory_copy_string(chief.uid);
        entry->log.ended_read = false;
        entry->log.ended_ms = now_ms;
        entry->log.turn_ms = now_ms;
    }
    return entry->log.ended_ms;
}

/* A frozen process may fail its probe, and the deadline needs its log all the same. */
static bool has_a_log(const struct training_job *job, const struct pod_view *chief)
{
    bool started = *chief->init_container == '\0' && chief->started_ms != FIELD_UNSET;
    return chief->ready || (started && job->run_policy.progress_deadline_seconds != FIELD_UNSET);
}

int64_t log_reader_look(struct log_reader *reader, struct job_entry *entry, const struct training_job *job,
                        int64_t now_ms)
{
    struct pod_room room;
    struct pod_view chief;
    if (entry->log.call || !find_chief(entry, job, &room, &chief))
        return PLAN_NEVER;
    bool ended = pod_view_ended(&chief);
    if (ended ? !is_unread(entry, &chief) : !has_a_log(job, &chief))
        return PLAN_NEVER;
    if (now_ms < entry->log.turn_ms)
        return entry->log.turn_ms;
    if (!ended && !progress_pace_is_turn(&reader->pace, &entry->log.turn_ms, now_ms))
        return entry->log.turn_ms;
    ask(reader, entry, job, &chief);
    if (entry->log.turn_ms < now_ms + LOG_INTERVAL_MS)
        entry->log.turn_ms = now_ms + LOG_INTERVAL_MS;
    return PLAN_NEVER;
}

void log_reader_clock_set(struct log_reader *reader, int64_t by_ms)
{
    reader->pace.free_ms += by_ms;
}

void log_reader_forget(struct job_entry *entry)
{
    if (entry->log.call)
        kube_call_cancel(entry->log.call);
}
