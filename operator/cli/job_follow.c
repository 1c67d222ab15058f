/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/job_follow.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/labels.h"
#include "common/job/training_job.h"
#include "common/memory.h"
#include "operator/cli/access.h"
#include "operator/cli/chief_status.h"
#include "operator/cli/log_lines.h"
#include "operator/cli/log_position.h"
#include "operator/kube/informer.h"

#define LOG_RETRY_MS 200
#define LOG_RETRY_MAX_MS 3200
/* A job may be over before its chief's last lines have arrived, or may have none. Longer than the time between two tries. */
#define LAST_LINES_MS 5000
/* And so long at most where the chief lives on: what it says then is not the job's any more. */
#define AFTERWARDS_MS 30000
#define LOG_LINE_MAX (64 * 1024)

struct job_follow {
    struct kube_client *client;
    struct job_view *view;
    void (*changed)(void *context);
    void *context;
    struct informer *jobs, *pods;
    struct access to_jobs, to_pods;
    char *selector, *field;
    struct chief_status *status; /* NULL: none */
    char uid[64];                /* of a job of ours; "": not known, or of a foreign framework */
    /* The chief's log. */
    struct kube_call *log;
    struct event_timer *retry;
    int64_t retry_ms;
    unsigned tries;               /* without a new line, since no more is to come */
    int64_t over_ms;              /* when the job was first seen to be over; 0: it is not */
    int64_t logged_ms;            /* when its log told something, or was asked for in vain; or over_ms */
    char pod[VIEW_TEXT_MAX];      /* the pod with the log that is read, or was read last */
    struct log_position position; /* in it */
    struct log_end end;           /* of its last stream */
    bool ended, again;            /* the log has; its stream has, and is to be opened again */
    bool pods_hidden;             /* the user may not read pods */
    bool hidden_told;
    struct error lost; /* why the rest of the last chief's log is not here; ERROR_NONE: it is */
    bool lost_told;
    struct buffer line;
};

/* ---------------------------------------------------------------- the chief's log */

static void log_next(struct job_follow *follow);

static const struct pod_line *chief_of(const struct job_view *view)
{
    const struct pod_line *chief = job_view_pod(view, "chief", 0);
    return chief ? chief : job_view_pod(view, "worker", 0);
}

/* Returns whether the container of the log that is read, or was read last, has ended. */
static bool log_is_whole(const struct job_follow *follow)
{
    const struct pod_line *chief = chief_of(follow->view);
    return chief == NULL || strcmp(chief->name, follow->pod) != 0 || chief->container_ended;
}

static int log_data(void *context, const char *bytes, size_t length, struct error *error)
{
    (void)error;
    struct job_follow *follow = context;
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] != '\n') {
            buffer_append_byte(&follow->line, bytes[i],
                               NULL); /* of a line that is too long the beginning says enough */
            continue;
        }
        const char *line = buffer_text(&follow->line);
        if (log_position_take(&follow->position, line, follow->line.length)) {
            follow->tries = 0;
            follow->retry_ms = LOG_RETRY_MS;
            job_view_take_log(follow->view, line + log_line_text(line, follow->line.length), clock_now_ms());
        }
        buffer_clear(&follow->line);
    }
    if (log_is_whole(follow))
        follow->logged_ms = clock_now_ms();
    follow->changed(follow->context);
    return 0;
}

static void log_retry(void *context)
{
    struct job_follow *follow = context;
    follow->retry = NULL;
    log_next(follow);
}

/* Returns whether no more of the log will come, or none can be read. An API server that has just come back may refuse what it allows
 * later. In a job that is over, a pod that has fallen silent may be on a node that is gone. */
static bool log_is_at_end(struct job_follow *follow, const struct error *error)
{
    bool whole = log_is_whole(follow), final = whole || job_view_over(follow->view);
    bool heard = log_position_since(&follow->position) != NULL;
    bool same = !error && log_end_is_same(&follow->end, &follow->position, follow->line.length);
    bool gone = whole && error && error->http_status == 404;
    follow->tries = final ? follow->tries + 1 : 0;
    bool enough = (final && same) || gone || follow->tries >= LOG_LAST_TRIES;
    if (enough && error && heard && !(gone && follow->end.known))
        follow->lost = *error;
    return enough || (error && error->http_status == 403 && !heard);
}

static void log_answered(void *context, const struct kube_answer *answer)
{
    struct job_follow *follow = context;
    follow->log = NULL;
    if (answer->error && answer->error->kind == ERROR_CANCELLED)
        return;
    follow->ended = log_is_at_end(follow, answer->error);
    follow->again = !follow->ended;
    follow->logged_ms = clock_now_ms();
    follow->retry = event_timer_start(kube_client_loop(follow->client), follow->retry_ms, log_retry, follow);
    follow->retry_ms = follow->ended                             ? LOG_RETRY_MS
                       : 2 * follow->retry_ms < LOG_RETRY_MAX_MS ? 2 * follow->retry_ms
                                                                 : LOG_RETRY_MAX_MS;
    follow->changed(follow->context);
}

static void log_start(struct job_follow *follow, const char *container)
{
    SCOPED_BUFFER path = BUFFER_INIT(4096);
    struct resource_path log = {KUBE_PODS, follow->view->name_space, follow->pod, "log"};
    if (resource_path_append(&path, &log, NULL) < 0 || resource_path_append_query(&path, "follow", "true", NULL) < 0 ||
        resource_path_append_query(&path, "container", container, NULL) < 0 ||
        resource_path_append_query(&path, "timestamps", "true", NULL) < 0 ||
        resource_path_append_query(&path, "sinceTime", log_position_since(&follow->position), NULL) < 0)
        return;
    follow->ended = follow->again = false;
    buffer_clear(&follow->line);
    struct kube_stream_options options = {
        .path_and_query = buffer_text(&path), .on_data = log_data, .answered = log_answered, .context = follow};
    follow->log = kube_client_stream(follow->client, &options);
}

/* Whether the chief trained under an earlier command, and the job continues. */
static bool log_is_old(const struct job_view *view, const struct pod_line *chief)
{
    return chief->earlier && !view->was_over;
}

/* A log is read once from its beginning, further where its stream was cut; then its pod's successor's. */
static void log_next(struct job_follow *follow)
{
    const struct pod_line *chief = chief_of(follow->view);
    if (follow->log || follow->retry || !chief || strcmp(chief->words, "starting") == 0 || !follow->view->seen ||
        log_is_old(follow->view, chief) || (strcmp(chief->name, follow->pod) == 0 && !follow->again))
        return;
    if (strcmp(chief->name, follow->pod) == 0) {
        log_position_cut(&follow->position);
    } else {
        snprintf(follow->pod, sizeof follow->pod, "%s", chief->name);
        follow->position = (struct log_position){.same = 0};
        follow->end = (struct log_end){.known = false};
        follow->tries = 0;
        job_view_begin_log(follow->view);
    }
    log_start(follow, chief->container);
}

static bool log_has_ended(const struct job_follow *follow)
{
    const struct pod_line *chief = chief_of(follow->view);
    if (follow->pods_hidden && !follow->log)
        return true;
    return follow->ended && (!chief || strcmp(chief->name, follow->pod) == 0);
}

bool job_follow_is_over(struct job_follow *follow)
{
    int64_t now_ms = clock_now_ms();
    if (follow->view->deleted)
        return true;
    if (!job_view_over(follow->view)) {
        follow->over_ms = 0;
        return false;
    }
    if (follow->over_ms == 0)
        follow->over_ms = follow->logged_ms = now_ms;
    return log_has_ended(follow) || now_ms - follow->logged_ms > LAST_LINES_MS ||
           (!log_is_whole(follow) && now_ms - follow->over_ms > AFTERWARDS_MS);
}

/* ---------------------------------------------------------------- what is watched */

static void chief_said(void *context, const struct status_document *document)
{
    struct job_follow *follow = context;
    job_view_take_document(follow->view, document, clock_now_ms());
    follow->changed(follow->context);
}

static void job_seen(void *context, const char *key, const void *item)
{
    (void)key;
    struct job_follow *follow = context;
    bool ours = spec_framework(json_member(item, "spec")) == FRAMEWORK_COXSWAIN;
    snprintf(follow->uid, sizeof follow->uid, "%s", ours ? json_string_at(item, "metadata.uid", "") : "");
    job_view_take_job(follow->view, item);
    log_next(follow);
    chief_status_of(follow->status, chief_of(follow->view), follow->uid);
    follow->changed(follow->context);
}

static void job_changed(void *context, const char *key, const void *old, const void *item)
{
    (void)old;
    job_seen(context, key, item);
}

static void job_gone(void *context, const char *key, const void *item)
{
    (void)key;
    (void)item;
    struct job_follow *follow = context;
    follow->view->deleted = true;
    follow->changed(follow->context);
}

static void pod_seen(void *context, const char *key, const void *item)
{
    (void)key;
    struct job_follow *follow = context;
    job_view_take_pod(follow->view, json_string_at(item, "metadata.name", ""), item);
    log_next(follow);
    chief_status_of(follow->status, chief_of(follow->view), follow->uid);
    follow->changed(follow->context);
}

static void pod_changed(void *context, const char *key, const void *old, const void *item)
{
    (void)old;
    pod_seen(context, key, item);
}

static void pod_gone(void *context, const char *key, const void *item)
{
    (void)key;
    struct job_follow *follow = context;
    job_view_take_pod(follow->view, json_string_at(item, "metadata.name", ""), NULL);
    chief_status_of(follow->status, chief_of(follow->view), follow->uid);
    follow->changed(follow->context);
}

struct job_follow *job_follow_start(struct kube_client *client, struct job_view *view, void (*changed)(void *context),
                                    void *context)
{
    struct job_follow *follow = memory_allocate(1, sizeof *follow);
    follow->client = client;
    follow->retry_ms = LOG_RETRY_MS;
    follow->view = view;
    follow->changed = changed;
    follow->context = context;
    follow->field = memory_format("metadata.name=%s", view->name);
    follow->selector = memory_format("%s=%s", LABEL_JOB_NAME, view->name);
    buffer_init(&follow->line, LOG_LINE_MAX);
    struct informer_options jobs = {
        .resource = {API_GROUP, API_VERSION, TRAINING_JOB_PLURAL},
        .name_space = view->name_space,
        .field_selector = follow->field,
        .parse = informer_item_copy,
        .item_free = informer_item_free,
        .on_added = job_seen,
        .on_changed = job_changed,
        .on_deleted = job_gone,
        .context = follow,
    };
    struct informer_options pods = {
        .resource = KUBE_PODS,
        .name_space = view->name_space,
        .label_selector = follow->selector,
        .parse = informer_item_copy,
        .item_free = informer_item_free,
        .on_added = pod_seen,
        .on_changed = pod_changed,
        .on_deleted = pod_gone,
        .context = follow,
    };
    follow->status = chief_status_new(client, view->name_space, chief_said, follow);
    follow->jobs = informer_start(client, &jobs);
    follow->pods = informer_start(client, &pods);
    return follow;
}

/* The job itself says most of what there is to see. */
static void tell_hidden(struct job_follow *follow, const char *title, struct terminal *terminal, struct error *refusal)
{
    access_explain(refusal);
    terminal_clear(terminal);
    fprintf(stderr, "%s: %s; until then %s is shown without its pods and their logs\n", title, refusal->message,
            follow->view->name);
    follow->hidden_told = true;
}

static void tell_lost(struct job_follow *follow, const char *title, struct terminal *terminal)
{
    terminal_clear(terminal);
    fprintf(stderr, "%s: the log of %s could not be read to its end: %s\n", title, follow->pod, follow->lost.message);
    follow->lost_told = true;
}

int job_follow_check(struct job_follow *follow, const char *title, struct terminal *terminal, struct error *error)
{
    int64_t now_ms = clock_now_ms();
    struct error refusal = ERROR_INIT;
    follow->pods_hidden = access_check(&follow->to_pods, follow->pods, now_ms, &refusal) < 0;
    if (access_check(&follow->to_jobs, follow->jobs, now_ms, error) < 0)
        return -1;
    if (follow->pods_hidden && !follow->hidden_told)
        tell_hidden(follow, title, terminal, &refusal);
    if (follow->lost.kind != ERROR_NONE && !follow->lost_told)
        tell_lost(follow, title, terminal);
    return 0;
}

void job_follow_free(struct job_follow *follow)
{
    informer_free(follow->jobs);
    informer_free(follow->pods);
    chief_status_free(follow->status);
    if (follow->log)
        kube_call_cancel(follow->log);
    if (follow->retry)
        event_timer_cancel(follow->retry);
    buffer_release(&follow->line);
    free(follow->selector);
    free(follow->field);
    free(follow);
}
