/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/log_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/log_report.h"
#include "common/memory.h"
#include "operator/controller/execute/progress_pace.h"
#include "operator/controller/plan/crew.h"

#define TAIL_LINES "200"
#define KEPT_MAX 65536     /* bytes of the log's end that are searched */
#define READ_MAX (4 << 20) /* bytes that are received */
#define TIMEOUT_MS 5000

struct log_reader {
    struct kube_client *client;
    progress_told *told;
    void *context;
    struct progress_pace pace;
};

/* A request for the log of one pod. */
struct log_request {
    struct log_reader *reader;
    struct job_entry *entry;
    char *uid, *pod; /* of the job, and of the pod */
    bool ended;      /* the pod had when it was asked */
    char *patterns[LOG_PATTERNS_MAX];
    unsigned pattern_count;
    struct buffer text; /* the newest KEPT_MAX bytes */
    size_t received;
};

struct log_reader *log_reader_new(struct kube_client *client, progress_told *told, void *context)
{
    struct log_reader *reader = memory_allocate(1, sizeof *reader);
    reader->client = client;
    reader->told = told;
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

static bool has_values(const struct status_document *report)
{
    return report->metric_count > 0 || report->step != STATUS_UNKNOWN || report->total_steps != STATUS_UNKNOWN ||
           report->data_epoch != STATUS_UNKNOWN;
}

/* Returns whether the report says something that the entry does not hold already. */
static bool keep_report(const struct log_request *request, struct status_document *report)
{
    struct job_entry *entry = request->entry;
    bool known = entry->document && strcmp(entry->document_pod, request->pod) == 0;
    if (!has_values(report) || (known && same_values(entry->document, report)))
        return false;
    snprintf(report->job_uid, sizeof report->job_uid, "%s", request->uid);
    report->phase = STATUS_TRAINING;
    report->updated_at_ms = clock_now_ms();
    if (!entry->document)
        entry->document = memory_allocate(1, sizeof *entry->document);
    *entry->document = *report;
    free(entry->document_pod);
    entry->document_pod = memory_copy_string(request->pod);
    entry->document_fresh = true;
    return true;
}

/* Returns whether it is another flaw than before. */
static bool keep_flaw(struct job_entry *entry, const struct error *flaw)
{
    const char *words = flaw->kind == ERROR_NONE ? NULL : flaw->message;
    if (words && entry->log.flaw && strcmp(words, entry->log.flaw) == 0)
        return false;
    bool news = words || entry->log.flaw;
    free(entry->log.flaw);
    entry->log.flaw = words ? memory_copy_string(words) : NULL;
    entry->log.flaw_told = false;
    return news;
}

static bool read_report(struct log_request *request, const struct error *failure)
{
    struct status_document report;
    struct error flaw = ERROR_INIT;
    if (failure) {
        error_set(&flaw, failure->kind, "its log could not be read: %s", failure->message);
        return keep_flaw(request->entry, &flaw);
    }
    const char *const *patterns = (const char *const *)request->patterns;
    log_report_read(patterns, request->pattern_count, buffer_text(&request->text), request->text.length, &report,
                    &flaw);
    bool kept = keep_report(request, &report);
    return keep_flaw(request->entry, &flaw) || kept;
}

static void answered(void *context, const struct kube_answer *answer)
{
    struct log_request *request = context;
    struct log_reader *reader = request->reader;
    struct job_entry *entry = request->entry;
    bool cancelled = answer->error && answer->error->kind == ERROR_CANCELLED, news = false;
    entry->log.call = NULL;
    if (!cancelled && job_entry_is_about(entry, request->uid)) {
        news = read_report(request, answer->error) || request->ended;
        if (request->ended) {
            free(entry->log.read_pod);
            entry->log.read_pod = memory_copy_string(request->pod);
        }
    }
    request_free(request);
    if (news)
        reader->told(reader->context, entry);
}

static int received(void *context, const char *bytes, size_t length, struct error *error)
{
    struct log_request *request = context;
    request->received += length;
    if (length > KEPT_MAX) {
        bytes += length - KEPT_MAX;
        length = KEPT_MAX;
    }
    size_t room = KEPT_MAX - length;
    if (request->text.length > room)
        buffer_consume(&request->text, request->text.length - room);
    if (request->received > READ_MAX)
        return error_set(error, ERROR_TOO_LARGE, "its last " TAIL_LINES " lines are longer than %d bytes", READ_MAX);
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
    SCOPED_BUFFER path;
    buffer_init(&path, KEPT_MAX);
    if (write_path(entry->key, pod, &path, NULL) < 0)
        return;
    struct log_request *request = memory_allocate(1, sizeof *request);
    *request = (struct log_request){.reader = reader,
                                    .entry = entry,
                                    .uid = memory_copy_string(job->uid),
                                    .pod = memory_copy_string(pod->uid),
                                    .ended = pod_view_ended(pod),
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
           job_entry_find_pod(entry, job, crew_chief_role(job), room, ret_chief);
}

static bool is_unread(const struct job_entry *entry, const struct pod_view *chief)
{
    return pod_view_succeeded(chief) && !(entry->log.read_pod && strcmp(entry->log.read_pod, chief->uid) == 0);
}

bool log_reader_has_unread(const struct job_entry *entry, const struct training_job *job)
{
    struct pod_room room;
    struct pod_view chief;
    return find_chief(entry, job, &room, &chief) && is_unread(entry, &chief);
}

int64_t log_reader_look(struct log_reader *reader, struct job_entry *entry, const struct training_job *job,
                        int64_t now_ms)
{
    struct pod_room room;
    struct pod_view chief;
    if (!find_chief(entry, job, &room, &chief))
        return PLAN_NEVER;
    if (pod_view_ended(&chief) || !chief.ready) {
        if (!entry->log.call && is_unread(entry, &chief))
            ask(reader, entry, job, &chief);
        return PLAN_NEVER;
    }
    if (progress_pace_is_turn(&reader->pace, &entry->log.turn_ms, now_ms) && !entry->log.call) {
        ask(reader, entry, job, &chief);
        if (entry->log.turn_ms < now_ms + LOG_INTERVAL_MS)
            entry->log.turn_ms = now_ms + LOG_INTERVAL_MS;
    }
    return entry->log.turn_ms;
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
