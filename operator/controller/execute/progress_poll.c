/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/progress_poll.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/environment.h"
#include "common/memory.h"
#include "operator/controller/execute/progress_answers.h"
#include "operator/controller/execute/progress_pace.h"
#include "operator/controller/objects/crew_roles.h"
#include "operator/controller/plan/crew.h"

#define TIMEOUT_MS 2000

struct progress_poller {
    struct http_client *client;
    progress_received *received;
    void *context;
    struct progress_pace pace;
    struct progress_counts counts;
};

/* First the chief, then the evaluator beside it. */
struct question {
    struct progress_poller *poller;
    struct job_entry *entry;
    char *uid, *chief; /* of the job, and of the pod that is asked */
    int64_t asked_ms;
    char *evaluator; /* its address; NULL: there is none that could be asked, or it is asked already */
};

struct progress_poller *progress_poller_new(struct http_client *client, progress_received *received, void *context)
{
    struct progress_poller *poller = memory_allocate(1, sizeof *poller);
    poller->client = client;
    poller->received = received;
    poller->context = context;
    return poller;
}

void progress_poller_free(struct progress_poller *poller)
{
    free(poller);
}

static bool keep_document(struct job_entry *entry, const char *uid, const char *chief, const char *text, size_t length)
{
    struct status_document document;
    if (status_document_parse(text, length, &document, NULL) < 0 || strcmp(document.job_uid, uid) != 0 ||
        !job_entry_is_about(entry, uid))
        return false;
    if (!entry->document)
        entry->document = memory_allocate(1, sizeof *entry->document);
    char *pod = memory_copy_string(chief);
    free(entry->document_pod);
    entry->document_pod = pod;
    *entry->document = document;
    entry->document_fresh = true;
    return true;
}

/* Adds the evaluator's scores to the chief's document. The chief's own are from the end of the run, and newer. */
static bool keep_scores(struct job_entry *entry, const char *uid, const char *text, size_t length)
{
    struct status_document scores;
    if (!entry->document || status_document_parse(text, length, &scores, NULL) < 0 ||
        strcmp(scores.job_uid, uid) != 0 || !job_entry_is_about(entry, uid))
        return false;
    for (unsigned i = 0; i < scores.metric_count; i++)
        if (!status_document_metric(entry->document, scores.metrics[i].name))
            status_document_set_metric(entry->document, scores.metrics[i].name, scores.metrics[i].value,
                                       scores.metrics[i].step);
    return true;
}

static void question_free(struct question *question)
{
    free(question->evaluator);
    free(question->chief);
    free(question->uid);
    free(question);
}

static void ask(struct question *question, const char *ip, http_done *done)
{
    bool v6 = strchr(ip, ':') != NULL;
    SCOPED_FREE char *url = memory_format("http://%s%s%s:%d/status", v6 ? "[" : "", ip, v6 ? "]" : "", PORT_HTTP);
    struct http_request request = {
        .method = "GET",
        .url = url,
        .max_body = STATUS_DOCUMENT_MAX,
        .timeout_ms = TIMEOUT_MS,
        .done = done,
        .context = question,
    };
    question->entry->poll = http_client_start(question->poller->client, &request);
}

static bool is_cancelled(const struct http_response *response)
{
    return response->error && response->error->kind == ERROR_CANCELLED;
}

static bool is_answer(const struct http_response *response)
{
    return !response->error && response->status == 200;
}

static enum chief_voice voice_of(const struct http_response *response, bool received)
{
    if (received)
        return CHIEF_HEARD;
    return response->error ? CHIEF_SILENT : CHIEF_STRANGE;
}

static void count(struct progress_poller *poller, enum chief_voice voice)
{
    poller->counts.answered += voice == CHIEF_HEARD;
    poller->counts.unanswered += voice == CHIEF_SILENT;
    poller->counts.refused += voice == CHIEF_STRANGE;
}

/* The chief's document is used even if the evaluator gives no answer. */
static void evaluator_answered(void *context, const struct http_response *response)
{
    struct question *question = context;
    struct job_entry *entry = question->entry;
    struct progress_poller *poller = question->poller;
    bool cancelled = is_cancelled(response);
    entry->poll = NULL;
    entry->document_fresh |= !cancelled && entry->document;
    bool received = is_answer(response) && keep_scores(entry, question->uid, response->body, response->body_length);
    question_free(question);
    if (cancelled)
        return;
    count(poller, voice_of(response, received));
    poller->received(poller->context, entry);
}

static void chief_answered(void *context, const struct http_response *response)
{
    struct question *question = context;
    struct job_entry *entry = question->entry;
    struct progress_poller *poller = question->poller;
    entry->poll = NULL;
    bool received = is_answer(response) &&
                    keep_document(entry, question->uid, question->chief, response->body, response->body_length);
    if (received)
        progress_answers_note(entry, question->chief, question->asked_ms,
                              status_document_has_progress(entry->document));
    if (!is_cancelled(response)) {
        enum chief_voice voice = voice_of(response, received);
        count(poller, voice);
        progress_heard(entry, question->chief, voice, clock_now_ms());
    }
    if (received && question->evaluator) {
        entry->document_fresh = false; /* not before it is whole: figures would come and go */
        ask(question, question->evaluator, evaluator_answered);
        return;
    }
    question_free(question);
    if (received || entry->voice != CHIEF_HEARD)
        poller->received(poller->context, entry);
}

static bool can_be_asked(const struct pod_view *pod)
{
    return *pod->ip && pod->ready && !pod_view_ended(pod);
}

static struct question *question_new(struct progress_poller *poller, struct job_entry *entry,
                                     const struct training_job *job, const struct pod_view *chief)
{
    struct question *question = memory_allocate(1, sizeof *question);
    struct pod_room room;
    struct pod_view evaluator;
    *question = (struct question){.poller = poller,
                                  .entry = entry,
                                  .asked_ms = clock_now_ms(),
                                  .uid = memory_copy_string(job->uid),
                                  .chief = memory_copy_string(chief->uid)};
    if (job_entry_find_pod(entry, job, ROLE_EVALUATOR, &room, &evaluator) && can_be_asked(&evaluator))
        question->evaluator = memory_copy_string(evaluator.ip);
    return question;
}

int64_t progress_poll(struct progress_poller *poller, struct job_entry *entry, const struct training_job *job,
                      int64_t now_ms)
{
    struct pod_room room;
    struct pod_view chief;
    if (job->framework != FRAMEWORK_COXSWAIN || !job_entry_find_pod(entry, job, crew_chief_role(job), &room, &chief) ||
        !can_be_asked(&chief)) {
        progress_ask_pod(entry, NULL);
        return PLAN_NEVER;
    }
    progress_ask_pod(entry, chief.uid);
    if (progress_pace_is_turn(&poller->pace, &entry->poll_ms, now_ms) && !entry->poll)
        ask(question_new(poller, entry, job, &chief), chief.ip, chief_answered);
    return entry->poll_ms;
}

static bool is_asked(const struct job_entry *entry, const char *pod_uid)
{
    return entry->asked_pod && pod_uid && strcmp(entry->asked_pod, pod_uid) == 0;
}

void progress_ask_pod(struct job_entry *entry, const char *pod_uid)
{
    if (is_asked(entry, pod_uid))
        return;
    free(entry->asked_pod);
    entry->asked_pod = pod_uid ? memory_copy_string(pod_uid) : NULL;
    entry->unanswered_since_ms = FIELD_UNSET;
    entry->voice = CHIEF_HEARD;
}

/* Between two questions many jobs leave minutes: one alone that failed tells of no minute. */
void progress_heard(struct job_entry *entry, const char *pod_uid, enum chief_voice voice, int64_t now_ms)
{
    if (!is_asked(entry, pod_uid))
        return;
    if (voice == CHIEF_HEARD)
        entry->unanswered_since_ms = FIELD_UNSET;
    else if (entry->unanswered_since_ms == FIELD_UNSET)
        entry->unanswered_since_ms = now_ms;
    bool should_know = voice != CHIEF_HEARD && now_ms - entry->unanswered_since_ms >= PROGRESS_SILENCE_MS;
    entry->voice = should_know ? voice : CHIEF_HEARD;
}

enum chief_voice progress_chief_voice(const struct job_entry *entry, const struct training_job *job)
{
    struct pod_room room;
    struct pod_view chief;
    bool counts = job_entry_find_pod(entry, job, crew_chief_role(job), &room, &chief) && can_be_asked(&chief) &&
                  is_asked(entry, chief.uid);
    return counts ? entry->voice : CHIEF_HEARD;
}

struct progress_counts progress_poller_counts(const struct progress_poller *poller)
{
    return poller->counts;
}

void progress_poller_clock_set(struct progress_poller *poller, int64_t by_ms)
{
    poller->pace.free_ms += by_ms;
}

void progress_forget(struct job_entry *entry)
{
    if (entry->poll)
        http_transfer_cancel(entry->poll);
}

void progress_read_failure_line(struct job_entry *entry, const struct training_job *job)
{
    struct pod_room room;
    struct pod_view chief;
    if (job_entry_find_pod(entry, job, crew_chief_role(job), &room, &chief) && pod_view_succeeded(&chief) &&
        *chief.termination_message == '{')
        keep_document(entry, job->uid, chief.uid, chief.termination_message, strlen(chief.termination_message));
}

const char *progress_crew_waits(const struct job_entry *entry, const struct training_job *job)
{
    const struct status_document *document = entry->document;
    struct pod_room room;
    struct pod_view chief;
    if (!document || document->phase != STATUS_WAITING || *document->message == '\0')
        return NULL;
    bool ready = job_entry_find_pod(entry, job, crew_chief_role(job), &room, &chief) && can_be_asked(&chief);
    return ready && strcmp(chief.uid, entry->document_pod) == 0 ? document->message : NULL;
}
