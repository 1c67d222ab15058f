/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/log_follow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/contract/labels.h"
#include "common/memory.h"
#include "operator/cli/job_condition.h"
#include "operator/kube/informer.h"

#define LINE_MAX_LENGTH (1024 * 1024)
#define PATH_MAX_LENGTH 4096
#define TURN_MS 1000

struct log_follower {
    struct cluster *cluster;
    const struct command_line *line;
    struct log_style style;
    struct log_stream *streams;
    unsigned open;
};

/* One pod's log; stays in the list when it has ended, so that it is read once. */
struct log_stream {
    struct log_follower *follower;
    struct log_stream *next;
    char *uid;
    char speaker[LOG_SPEAKER_MAX];
    struct buffer text; /* of a line that is not complete yet */
    struct kube_call *call;
};

static void print_line(struct log_stream *stream)
{
    SCOPED_BUFFER out;
    buffer_init(&out, 2 * LINE_MAX_LENGTH);
    log_line_print(&stream->follower->style, stream->speaker, buffer_text(&stream->text), stream->text.length, &out);
    fwrite(buffer_text(&out), 1, out.length, stdout);
    buffer_clear(&stream->text);
}

static int take(void *context, const char *bytes, size_t length, struct error *error)
{
    struct log_stream *stream = context;
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == '\n')
            print_line(stream);
        else if (buffer_append_byte(&stream->text, bytes[i], error) < 0)
            return -1;
    }
    fflush(stdout);
    return 0;
}

static void ended(void *context, const struct kube_answer *answer)
{
    struct log_stream *stream = context;
    stream->call = NULL;
    stream->follower->open--;
    if (stream->text.length > 0)
        print_line(stream);
    if (answer->error && answer->error->kind != ERROR_CANCELLED)
        fprintf(stderr, "cox logs: %s: %s\n", stream->speaker, answer->error->message);
    fflush(stdout);
}

static void stream_start(struct log_follower *follower, const struct json *pod)
{
    SCOPED_BUFFER path;
    buffer_init(&path, PATH_MAX_LENGTH);
    if (log_path(follower->line, pod, true, &path, NULL) < 0)
        return;
    struct log_stream *stream = memory_allocate(1, sizeof *stream);
    *stream = (struct log_stream){.follower = follower, .next = follower->streams};
    stream->uid = memory_copy_string(json_string_at(pod, "metadata.uid", ""));
    buffer_init(&stream->text, LINE_MAX_LENGTH);
    log_speaker(pod, stream->speaker);
    if (strlen(stream->speaker) > follower->style.width)
        follower->style.width = (unsigned)strlen(stream->speaker);
    struct kube_stream_options options = {
        .path_and_query = buffer_text(&path), .on_data = take, .answered = ended, .context = stream};
    stream->call = kube_client_stream(follower->cluster->client, &options);
    follower->streams = stream;
    follower->open++;
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
        buffer_release(&stream->text);
        free(stream->uid);
        free(stream);
    }
}

static bool is_over(const struct informer *jobs, const char *key)
{
    const struct json *job = informer_get(jobs, key);
    return informer_synced(jobs) && (!job || job_condition_true(job, "Failed") || job_condition_true(job, "Succeeded"));
}

int log_follow(struct cluster *cluster, const struct command_line *line, const struct log_style *style,
               struct error *error)
{
    struct log_follower follower = {.cluster = cluster, .line = line, .style = *style};
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
    int status = 0;
    while (status >= 0 && !cluster->interrupted && !(is_over(jobs, key) && informer_synced(pods) && follower.open == 0))
        status = event_loop_turn(cluster->loop, TURN_MS, error);
    streams_free(&follower);
    informer_free(pods);
    informer_free(jobs);
    return status < 0 ? -1 : 0;
}
