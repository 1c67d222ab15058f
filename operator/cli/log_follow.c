/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/log_follow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/labels.h"
#include "common/job/enum_words.h"
#include "common/memory.h"
#include "operator/cli/access.h"
#include "operator/cli/job_condition.h"
#include "operator/cli/log_queue.h"
#include "operator/kube/informer.h"

#define PATH_MAX_LENGTH 4096
#define TURN_MS 1000
/* Until a stream that was cut is opened again; longer each time that it brings nothing. */
#define AGAIN_MS 500
#define AGAIN_MAX_MS 8000
/* For this long after the job is over, logs are read of pods that are to stay as they are, and of pods that are to be ended but were not
 * asked to yet. */
#define STAYING_MS 5000
#define LEAVING_MS 30000

struct log_follower {
    struct cluster *cluster;
    const struct command_line *line;
    struct log_queue *queue;
    struct pod_stream *streams;
    const struct informer *jobs, *pods;
    const char *job;      /* its key */
    unsigned open;        /* streams, those that are to be opened again too */
    unsigned lost;        /* logs that could not be read to their end */
    bool unreached_told;  /* that the API server does not answer */
    bool heard;           /* something, of any of them */
    int64_t over_ms;      /* when the job was first seen to be over; 0: it is not */
    int64_t refused_ms;   /* since when all requests are refused with 403; 0: they are not */
    bool refused;         /* for good */
    struct error refusal; /* by which no log of the namespace may be read */
};

/* One pod's log; stays in the list when it has ended, so that it is read once. Its stream may end before the log does: the API
 * server, the kubelet or what stands between goes away. Then it is opened again where it was cut. */
struct pod_stream {
    struct log_follower *follower;
    struct pod_stream *next;
    char *key, *uid; /* the pod's */
    char speaker[LOG_SPEAKER_MAX];
    struct log_stream *lines; /* its lines in the queue */
    struct kube_call *call;
    struct event_timer *again;
    int64_t again_ms;
    unsigned tries; /* without a new line, since no more is to come */
    bool told;      /* that it cannot be read now */
    struct log_end end;
    bool ended;         /* the stream has ended after its container; whether it was the log's end is checked next */
    struct error cause; /* why the rest is missing; ERROR_NONE: nothing is */
};

static int take(void *context, const char *bytes, size_t length, struct error *error)
{
    struct pod_stream *stream = context;
    int result = log_stream_append(stream->lines, bytes, length, clock_now_ms(), error);
    stream->follower->heard = true;
    stream->follower->unreached_told = false;
    stream->follower->refused_ms = 0;
    if (!log_stream_position(stream->lines)->repeats) {
        stream->again_ms = AGAIN_MS;
        stream->tries = 0;
        stream->told = false;
    }
    return result;
}

/* Reports a log that was cut off and whose rest cannot be read. */
static void stream_end(struct pod_stream *stream)
{
    stream->follower->open--;
    bool is_gone = stream->ended && stream->cause.http_status == 404;
    if (stream->cause.kind != ERROR_NONE && !is_gone) {
        stream->follower->lost++;
        fprintf(stderr, "cox logs: %s: its log could not be read to the end: %s\n", stream->speaker,
                stream->cause.message);
    }
    log_stream_close(stream->lines, clock_now_ms());
}

static void ended(void *context, const struct kube_answer *answer);

static void stream_open(struct pod_stream *stream, const struct json *pod, const char *since)
{
    struct log_follower *follower = stream->follower;
    SCOPED_BUFFER path = BUFFER_INIT(PATH_MAX_LENGTH);
    if (log_path(follower->line, pod, true, since, &path, &stream->cause) < 0) {
        stream_end(stream);
        return;
    }
    struct kube_stream_options options = {
        .path_and_query = buffer_text(&path), .on_data = take, .answered = ended, .context = stream};
    stream->call = kube_client_stream(follower->cluster->client, &options);
}

static const struct json *pod_of(const struct pod_stream *stream)
{
    const struct json *pod = informer_get(stream->follower->pods, stream->key);
    return strcmp(json_string_at(pod, "metadata.uid", ""), stream->uid) == 0 ? pod : NULL;
}

static void open_again(void *context)
{
    struct pod_stream *stream = context;
    const struct json *pod = pod_of(stream);
    stream->again = NULL;
    if (!pod) {
        stream_end(stream);
        return;
    }
    log_stream_cut(stream->lines);
    stream_open(stream, pod, log_position_since(log_stream_position(stream->lines)));
}

static bool is_over(const struct informer *jobs, const char *key)
{
    return informer_synced(jobs) && job_is_over(informer_get(jobs, key));
}

/* Returns whether the log is complete (its container has ended, or the job is over, since a silent pod may then be on a node that is
 * gone), or another try would be refused as well, or there were enough tries. While a container runs, nothing is final: a kubelet that
 * has just come back does not know its pods yet. */
static bool is_last(struct pod_stream *stream)
{
    const struct log_follower *follower = stream->follower;
    int status = stream->cause.http_status;
    bool is_whole = !log_may_go_on(follower->line, pod_of(stream));
    bool is_final = is_whole || is_over(follower->jobs, follower->job);
    stream->tries = is_final ? stream->tries + 1 : 0;
    if (stream->cause.kind == ERROR_NONE) {
        stream->ended = is_whole;
        if (log_end_is_same(&stream->end, log_stream_position(stream->lines),
                            log_stream_incomplete_bytes(stream->lines)) &&
            is_final)
            return true;
        if (stream->tries >= LOG_LAST_TRIES)
            error_set(&stream->cause, ERROR_UNAVAILABLE, "the connection was lost repeatedly");
    }
    return (is_whole && (status == 400 || status == 404)) || stream->tries >= LOG_LAST_TRIES;
}

/* An API server that has just come back may refuse what it allows later, so a refusal after some output is not final at once. */
static void refusal_take(struct log_follower *follower, const struct error *error)
{
    int64_t now_ms = clock_now_ms();
    if (follower->refused_ms == 0)
        follower->refused_ms = now_ms;
    follower->refused = !follower->heard || now_ms - follower->refused_ms >= ACCESS_PATIENCE_MS;
    follower->refusal = *error;
}

static void tell(struct pod_stream *stream, const struct error *error)
{
    struct log_follower *follower = stream->follower;
    if (error->http_status == 0 && !follower->unreached_told)
        fprintf(stderr, "cox logs: trying again until the API server answers: %s\n", error->message);
    else if (error->http_status != 0 && !stream->told)
        fprintf(stderr, "cox logs: %s: %s\n", stream->speaker, error->message);
    follower->unreached_told |= error->http_status == 0;
    stream->told = true;
}

static void ended(void *context, const struct kube_answer *answer)
{
    struct pod_stream *stream = context;
    struct log_follower *follower = stream->follower;
    stream->call = NULL;
    stream->cause = answer->error ? *answer->error : (struct error)ERROR_INIT;
    if (stream->cause.kind == ERROR_CANCELLED)
        return;
    if (stream->cause.http_status == 403)
        refusal_take(follower, &stream->cause);
    else
        follower->refused_ms = 0;
    if (follower->refused)
        return;
    if (is_last(stream)) {
        stream_end(stream);
        return;
    }
    if (answer->error)
        tell(stream, answer->error);
    stream->again = event_timer_start(follower->cluster->loop, stream->again_ms, open_again, stream);
    stream->again_ms = 2 * stream->again_ms < AGAIN_MAX_MS ? 2 * stream->again_ms : AGAIN_MAX_MS;
}

/* ---------------------------------------------------------------- pods that outlive the job */

/* Nobody has asked it to end. */
static bool lives_on(const struct pod_stream *stream)
{
    const struct json *pod = pod_of(stream);
    return log_may_go_on(stream->follower->line, pod) && !json_at(pod, "metadata.deletionTimestamp");
}

/* Stops reading a pod's log: from now on, its output does not belong to the job. */
static void stream_leave(struct pod_stream *stream)
{
    if (stream->call)
        kube_call_cancel(stream->call);
    if (stream->again)
        event_timer_cancel(stream->again);
    stream->call = NULL;
    stream->again = NULL;
    stream->cause = (struct error)ERROR_INIT;
    fprintf(stderr, "cox logs: %s: the job is over but this pod still runs; its further output is not shown\n",
            stream->speaker);
    stream_end(stream);
}

static void leave(struct log_follower *follower, int64_t now_ms)
{
    const struct json *job = informer_get(follower->jobs, follower->job);
    bool stays =
        strcmp(json_string_at(job, "spec.runPolicy.cleanPodPolicy", ""), clean_pod_policy_words[CLEAN_NONE]) == 0;
    if (!is_over(follower->jobs, follower->job))
        follower->over_ms = 0;
    else if (follower->over_ms == 0)
        follower->over_ms = now_ms;
    if (follower->over_ms == 0 || now_ms - follower->over_ms < (stays ? STAYING_MS : LEAVING_MS))
        return;
    for (struct pod_stream *stream = follower->streams; stream; stream = stream->next)
        if ((stream->call || stream->again) && lives_on(stream))
            stream_leave(stream);
}

/* ---------------------------------------------------------------- pods */

static void stream_start(struct log_follower *follower, const struct json *pod)
{
    struct pod_stream *stream = memory_allocate(1, sizeof *stream);
    *stream = (struct pod_stream){.follower = follower, .next = follower->streams, .again_ms = AGAIN_MS};
    stream->key =
        memory_format("%s/%s", json_string_at(pod, "metadata.namespace", ""), json_string_at(pod, "metadata.name", ""));
    stream->uid = memory_copy_string(json_string_at(pod, "metadata.uid", ""));
    log_speaker(pod, stream->speaker);
    stream->lines = log_queue_open(follower->queue, stream->speaker);
    follower->streams = stream;
    follower->open++;
    stream_open(stream, pod, NULL);
}

static void pod_seen(void *context, const char *key, const void *item)
{
    (void)key;
    struct log_follower *follower = context;
    if (!log_is_wanted(follower->line, item))
        return;
    for (const struct pod_stream *stream = follower->streams; stream; stream = stream->next)
        if (strcmp(stream->uid, json_string_at(item, "metadata.uid", "")) == 0)
            return;
    stream_start(follower, item);
}

static void pod_changed(void *context, const char *key, const void *old, const void *item)
{
    (void)old;
    pod_seen(context, key, item);
}

static void streams_free(struct log_follower *follower)
{
    for (struct pod_stream *stream = follower->streams, *next; stream; stream = next) {
        next = stream->next;
        if (stream->call)
            kube_call_cancel(stream->call);
        if (stream->again)
            event_timer_cancel(stream->again);
        free(stream->key);
        free(stream->uid);
        free(stream);
    }
}

static void print_due(struct log_follower *follower, int64_t now_ms)
{
    SCOPED_BUFFER out = BUFFER_INIT(2 * LOG_LINE_MAX);
    while (log_queue_next(follower->queue, now_ms, &out)) {
        fwrite(buffer_text(&out), 1, out.length, stdout);
        buffer_clear(&out);
    }
    fflush(stdout);
}

/* Until the next line is due, if nothing comes before. */
static int turn(struct log_follower *follower, struct error *error)
{
    int64_t due_ms = log_queue_due_ms(follower->queue), left_ms = due_ms < 0 ? TURN_MS : due_ms - clock_now_ms();
    if (event_loop_turn(follower->cluster->loop,
                        left_ms < 0         ? 0
                        : left_ms < TURN_MS ? (int)left_ms
                                            : TURN_MS,
                        error) < 0)
        return -1;
    print_due(follower, clock_now_ms());
    if (!follower->refused)
        return 0;
    if (error)
        *error = follower->refusal;
    return -1;
}

static bool is_done(const struct log_follower *follower, const struct informer *jobs, const struct informer *pods,
                    const char *key)
{
    return is_over(jobs, key) && informer_synced(pods) && follower->open == 0 && log_queue_due_ms(follower->queue) < 0;
}

static int conclude(const struct log_follower *follower, int status)
{
    return status < 0 ? -1 : follower->lost > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int log_follow(struct cluster *cluster, const struct command_line *line, const struct log_style *style,
               struct error *error)
{
    struct log_follower follower = {.cluster = cluster, .line = line, .queue = log_queue_new(style)};
    SCOPED_FREE char *selector = memory_format("%s=%s", LABEL_JOB_NAME, line->names[0]);
    SCOPED_FREE char *field = memory_format("metadata.name=%s", line->names[0]);
    SCOPED_FREE char *key = memory_format("%s/%s", cluster->name_space, line->names[0]);
    struct informer_options of_jobs = {.resource = {API_GROUP, API_VERSION, TRAINING_JOB_PLURAL},
                                       .name_space = cluster->name_space,
                                       .field_selector = field,
                                       .parse = informer_item_copy,
                                       .item_free = informer_item_free};
    struct informer_options of_pods = {.resource = KUBE_PODS,
                                       .name_space = cluster->name_space,
                                       .label_selector = selector,
                                       .parse = informer_item_copy,
                                       .item_free = informer_item_free,
                                       .on_added = pod_seen,
                                       .on_changed = pod_changed,
                                       .context = &follower};
    struct informer *jobs = informer_start(cluster->client, &of_jobs);
    struct informer *pods = informer_start(cluster->client, &of_pods);
    follower.jobs = jobs;
    follower.pods = pods;
    follower.job = key;
    struct access to_jobs = {0}, to_pods = {0};
    int status = 0;
    while (status >= 0 && !cluster->interrupted && !is_done(&follower, jobs, pods, key)) {
        int64_t now_ms = clock_now_ms();
        status = access_check(&to_jobs, jobs, now_ms, error) < 0 || access_check(&to_pods, pods, now_ms, error) < 0
                     ? -1
                     : turn(&follower, error);
        leave(&follower, clock_now_ms());
    }
    print_due(&follower, INT64_MAX);
    streams_free(&follower);
    informer_free(pods);
    informer_free(jobs);
    log_queue_free(follower.queue);
    return conclude(&follower, status);
}
