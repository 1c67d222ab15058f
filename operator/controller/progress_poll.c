/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/progress_poll.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/environment.h"
#include "common/memory.h"
#include "operator/controller/crew.h"
#include "operator/controller/progress_pace.h"

#define TIMEOUT_MS 2000

struct progress_poller {
    struct http_client *client;
    progress_told *told;
    void *context;
    struct progress_pace pace;
};

struct question {
    struct progress_poller *poller;
    struct job_entry *entry;
    char *uid;
};

struct progress_poller *progress_poller_new(struct http_client *client, progress_told *told, void *context)
{
    struct progress_poller *poller = memory_allocate(1, sizeof *poller);
    poller->client = client;
    poller->told = told;
    poller->context = context;
    return poller;
}

void progress_poller_free(struct progress_poller *poller)
{
    free(poller);
}

static bool keep_document(struct job_entry *entry, const char *uid, const char *text, size_t length)
{
    struct status_document document;
    if (status_document_parse(text, length, &document, NULL) < 0 || strcmp(document.job_uid, uid) != 0 ||
        !job_entry_is_about(entry, uid))
        return false;
    if (!entry->document)
        entry->document = memory_allocate(1, sizeof *entry->document);
    *entry->document = document;
    entry->document_fresh = true;
    return true;
}

static void answered(void *context, const struct http_response *response)
{
    struct question *question = context;
    struct job_entry *entry = question->entry;
    entry->poll = NULL;
    bool cancelled = response->error && response->error->kind == ERROR_CANCELLED;
    bool told = !response->error && response->status == 200 &&
                keep_document(entry, question->uid, response->body, response->body_length);
    struct progress_poller *poller = question->poller;
    free(question->uid);
    free(question);
    if (told && !cancelled)
        poller->told(poller->context, entry);
}

/* False: there is none. */
static bool find_chief(const struct job_entry *entry, const struct training_job *job, struct pod_view *ret_chief)
{
    bool found = false;
    for (size_t i = 0; i < entry->pod_count; i++) {
        struct pod_view pod = pod_record_view(entry->pods[i]);
        if (!pod.member || !pod.current || pod.index != 0 || pod.role != crew_chief_role(job) ||
            strcmp(pod.job_uid, job->uid) != 0 || (found && pod.epoch <= ret_chief->epoch))
            continue;
        *ret_chief = pod;
        found = true;
    }
    return found;
}

static bool can_be_asked(const struct pod_view *chief)
{
    return *chief->ip && chief->ready && !pod_view_ended(chief);
}

static void ask(struct progress_poller *poller, struct job_entry *entry, const struct training_job *job, const char *ip)
{
    struct question *question = memory_allocate(1, sizeof *question);
    *question = (struct question){.poller = poller, .entry = entry, .uid = memory_copy_string(job->uid)};
    bool v6 = strchr(ip, ':') != NULL;
    SCOPED_FREE char *url = memory_format("http://%s%s%s:%d/status", v6 ? "[" : "", ip, v6 ? "]" : "", PORT_HTTP);
    struct http_request request = {
        .method = "GET",
        .url = url,
        .max_body = STATUS_DOCUMENT_MAX,
        .timeout_ms = TIMEOUT_MS,
        .done = answered,
        .context = question,
    };
    entry->poll = http_client_start(poller->client, &request);
}

int64_t progress_poll(struct progress_poller *poller, struct job_entry *entry, const struct training_job *job,
                      int64_t now_ms)
{
    struct pod_view chief;
    if (job->framework != FRAMEWORK_COXSWAIN || !find_chief(entry, job, &chief) || !can_be_asked(&chief))
        return PLAN_NEVER;
    if (progress_pace_is_turn(&poller->pace, &entry->poll_ms, now_ms) && !entry->poll)
        ask(poller, entry, job, chief.ip);
    return entry->poll_ms;
}

void progress_forget(struct job_entry *entry)
{
    if (entry->poll)
        http_transfer_cancel(entry->poll);
}

void progress_read_last_words(struct job_entry *entry, const struct training_job *job)
{
    struct pod_view chief;
    if (find_chief(entry, job, &chief) && pod_view_succeeded(&chief) && *chief.termination_message == '{')
        keep_document(entry, job->uid, chief.termination_message, strlen(chief.termination_message));
}
