/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/log_follow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/labels.h"
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

struct log_follower {
    struct cluster *cluster;
    const struct command_line *line;
    struct log_queue *queue;
    struct log_stream *streams;
    const struct informer *jobs, *pods;
    const char *job; /* its key */
    unsigned open;   /* streams, those that are to be opened again too */
    bool refused;
    struct error refusal; /* by which no log of the namespace may be read */
};

/* One pod's log; stays in the list when it has ended, so that it is read once. Its stream may end before the log does: the API
 * server, the kubelet or what stands between goes away. Then it is opened again where it was cut. */
struct log_stream {
    struct log_follower *follower;
    struct log_stream *next;
    char *key, *uid; /* the pod's */
    char speaker[LOG_SPEAKER_MAX];
    struct log_inlet *inlet;
    struct kube_call *call;
    struct event_timer *again;
    int64_t again_ms;
    bool told; /* that it cannot be read now */
};

static int take(void *context, const char *bytes, size_t length, struct error *error)
{
    struct log_stream *stream = context;
    int result = log_inlet_take(stream->inlet, bytes, length, clock_now_ms(), error);
    if (!log_inlet_position(stream->inlet)->repeats) {
        stream->again_ms = AGAIN_MS;
        stream->told = false;
    }
    return result;
}

static void stream_end(struct log_stream *stream)
{
    stream->follower->open--;
    log_inlet_close(stream->inlet, clock_now_ms());
}

static void ended(void *context, const struct kube_answer *answer);

static void stream_open(struct log_stream *stream, const struct json *pod, const char *since)
{
    struct log_follower *follower = stream->follower;
    SCOPED_BUFFER path;
    buffer_init(&path, PATH_MAX_LENGTH);
    if (log_path(follower->line, pod, true, since, &path, NULL) < 0) {
        stream_end(stream);
        return;
    }
    struct kube_stream_options options = {
        .path_and_query = buffer_text(&path), .on_data = take, .answered = ended, .context = stream};
    stream->call = kube_client_stream(follower->cluster->client, &options);
}

static const struct json *pod_of(const struct log_stream *stream)
{
    const struct json *pod = informer_get(stream->follower->pods, stream->key);
    return strcmp(json_string_at(pod, "metadata.uid", ""), stream->uid) == 0 ? pod : NULL;
}

static void open_again(void *context)
{
    struct log_stream *stream = context;
    const struct json *pod = pod_of(stream);
    stream->again = NULL;
    if (!pod) {
        stream_end(stream);
        return;
    }
    log_inlet_cut(stream->inlet);
    stream_open(stream, pod, log_position_since(log_inlet_position(stream->inlet)));
}

static bool is_over(const struct informer *jobs, const char *key)
{
    return informer_synced(jobs) && job_is_over(informer_get(jobs, key));
}

/* The end of a container's log, or a refusal that another try would meet too. Of a job that is over one more try is enough: who
 * does not answer then may be on a node that is gone. */
static bool is_last(const struct log_stream *stream, const struct error *error)
{
    const struct log_follower *follower = stream->follower;
    if (!log_may_go_on(follower->line, pod_of(stream)))
        return true;
    if (stream->again_ms > AGAIN_MS && is_over(follower->jobs, follower->job))
        return true;
    return error && (error->http_status == 400 || error->http_status == 404);
}

static void tell(struct log_stream *stream, const struct error *error)
{
    if (!stream->told)
        fprintf(stderr, "cox logs: %s: %s\n", stream->speaker, error->message);
    stream->told = true;
}

static void ended(void *context, const struct kube_answer *answer)
{
    struct log_stream *stream = context;
    struct log_follower *follower = stream->follower;
    stream->call = NULL;
    if (answer->error && answer->error->http_status == 403) {
        follower->refused = true;
        follower->refusal = *answer->error;
    }
    if (answer->error && !follower->refused && answer->error->kind != ERROR_CANCELLED)
        tell(stream, answer->error);
    if (follower->refused || is_last(stream, answer->error)) {
        stream_end(stream);
        return;
    }
    stream->again = event_timer_start(follower->cluster->loop, stream->again_ms, open_again, stream);
    stream->again_ms = 2 * stream->again_ms < AGAIN_MAX_MS ? 2 * stream->again_ms : AGAIN_MAX_MS;
}

static void stream_start(struct log_follower *follower, const struct json *pod)
{
    struct log_stream *stream = memory_allocate(1, sizeof *stream);
    *stream = (struct log_stream){.follower = follower, .next = follower->streams, .again_ms = AGAIN_MS};
    stream->key =
        memory_format("%s/%s", json_string_at(pod, "metadata.namespace", ""), json_string_at(pod, "metadata.name", ""));
    stream->uid = memory_copy_string(json_string_at(pod, "metadata.uid", ""));
    log_speaker(pod, stream->speaker);
    stream->inlet = log_queue_open(follower->queue, stream->speaker);
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
    for (const struct log_stream *stream = follower->streams; stream; stream = stream->next)
        if (strcmp(stream->uid, json_string_at(item, "metadata.uid", "")) == 0)
            return;
    stream_start(follower, item);
}

static void pod_changed(void *context, const char *key, const void *old, const void *item)
{
    (void)old;
    pod_seen(context, key, item);
}

static void *keep(void *context, const struct json *object)
{
    (void)context;
    return json_copy(object);
}

static void drop(void *item)
{
    json_free(item);
}

static void streams_free(struct log_follower *follower)
{
    for (struct log_stream *stream = follower->streams, *next; stream; stream = next) {
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
    SCOPED_BUFFER out;
    buffer_init(&out, 2 * LOG_LINE_MAX);
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
                                       .parse = keep,
                                       .item_free = drop};
    struct informer_options of_pods = {.resource = KUBE_PODS,
                                       .name_space = cluster->name_space,
                                       .label_selector = selector,
                                       .parse = keep,
                                       .item_free = drop,
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
    }
    print_due(&follower, INT64_MAX);
    streams_free(&follower);
    informer_free(pods);
    informer_free(jobs);
    log_queue_free(follower.queue);
    return status < 0 ? -1 : 0;
}
