/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/cluster.h"

#include <signal.h>

#include "common/contract/labels.h"
#include "common/memory.h"

#define PATH_AND_QUERY_MAX 4096
/* How often a read is tried whose answer was cut off or did not come. */
#define READ_TRIES 4
#define READ_AGAIN_MS 300

static void interrupted(void *context, int signal_number)
{
    (void)signal_number;
    ((struct cluster *)context)->interrupted = true;
}

int cluster_init(struct cluster *ret_cluster, struct error *error)
{
    *ret_cluster = (struct cluster){.client = NULL};
    if (event_loop_new(&ret_cluster->loop, error) < 0 ||
        event_loop_on_signal(ret_cluster->loop, SIGINT, interrupted, ret_cluster, error) < 0)
        return -1;
    return event_loop_on_signal(ret_cluster->loop, SIGTERM, interrupted, ret_cluster, error);
}

int cluster_connect(const struct command_line *line, struct cluster *ret_cluster, struct error *error)
{
    /* A log is followed for each pod of a crew, at once: over one connection where the API server can. */
    struct kube_client_options options = {
        .user_agent = "cox", .exec_plugins = true, .fail_refused = true, .http2 = true};
    if (cluster_init(ret_cluster, error) < 0 ||
        kube_config_load(line->kubeconfig, line->context, &ret_cluster->config, error) < 0 ||
        kube_client_new(ret_cluster->loop, &ret_cluster->config, &options, &ret_cluster->client, error) < 0)
        return -1;
    ret_cluster->kept = line->kept;
    ret_cluster->again = line->again;
    ret_cluster->name_space = line->name_space ? line->name_space : ret_cluster->config.name_space;
    return 0;
}

void cluster_release(struct cluster *cluster)
{
    if (cluster->client)
        kube_client_free(cluster->client);
    if (cluster->loop)
        event_loop_free(cluster->loop);
    kube_config_release(&cluster->config);
    cluster->client = NULL;
    cluster->loop = NULL;
}

struct resource_path cluster_job_path(const struct cluster *cluster, const char *name)
{
    return (struct resource_path){
        .resource = {API_GROUP, API_VERSION, TRAINING_JOB_PLURAL}, .name_space = cluster->name_space, .name = name};
}

struct resource_path cluster_sweep_path(const struct cluster *cluster, const char *name)
{
    return (struct resource_path){
        .resource = {API_GROUP, API_VERSION, TRAINING_SWEEP_PLURAL}, .name_space = cluster->name_space, .name = name};
}

/* ---------------------------------------------------------------- one request */

struct exchange {
    bool came, failed;
    struct json *object;
    struct buffer *text;
    struct error error;
};

static void answered(void *context, const struct kube_answer *answer)
{
    struct exchange *exchange = context;
    exchange->came = true;
    exchange->failed = answer->error != NULL;
    if (answer->error)
        exchange->error = *answer->error;
    else if (answer->object)
        exchange->object = json_copy(answer->object);
}

/* Waits for the answer. The answer to an interrupted request is dropped. */
static int exchange_finish(struct cluster *cluster, struct kube_call *call, struct exchange *exchange,
                           struct error *error)
{
    int turned = 0;
    while (!exchange->came && !cluster->interrupted && turned >= 0)
        turned = event_loop_turn(cluster->loop, -1, error);
    if (!exchange->came)
        kube_call_cancel(call);
    if (turned < 0)
        return -1;
    if (exchange->failed && error)
        *error = exchange->error;
    return exchange->failed ? -1 : 0;
}

int cluster_get(struct cluster *cluster, const struct resource_path *path, struct json **ret_object,
                struct error *error)
{
    struct exchange exchange = {.came = false};
    struct kube_call_options options = {.answered = answered, .context = &exchange};
    if (exchange_finish(cluster, kube_client_get(cluster->client, path, &options), &exchange, error) < 0)
        return -1;
    *ret_object = exchange.object ? exchange.object : json_new_object();
    return 0;
}

int cluster_patch(struct cluster *cluster, const struct resource_path *path, const struct json *patch,
                  struct error *error)
{
    struct exchange exchange = {.came = false};
    struct kube_call_options options = {.answered = answered, .context = &exchange};
    int status = exchange_finish(cluster, kube_client_patch(cluster->client, path, patch, &options), &exchange, error);
    json_free(exchange.object);
    return status;
}

int cluster_delete(struct cluster *cluster, const struct resource_path *path, struct error *error)
{
    struct exchange exchange = {.came = false};
    struct kube_call_options options = {.answered = answered, .context = &exchange};
    struct kube_delete_options what = {.propagation = "Background", .grace_seconds = -1};
    struct kube_call *call = kube_client_delete(cluster->client, path, &what, &options);
    int status = exchange_finish(cluster, call, &exchange, error);
    json_free(exchange.object);
    return status;
}

static int take_text(void *context, const char *bytes, size_t length, struct error *error)
{
    struct exchange *exchange = context;
    return buffer_append(exchange->text, bytes, length, error);
}

static int read_once(struct cluster *cluster, const char *path_and_query, struct buffer *text, struct error *error)
{
    struct exchange exchange = {.text = text};
    struct kube_stream_options options = {.path_and_query = path_and_query,
                                          .timeout_ms = KUBE_TIMEOUT_MS,
                                          .on_data = take_text,
                                          .answered = answered,
                                          .context = &exchange};
    return exchange_finish(cluster, kube_client_stream(cluster->client, &options), &exchange, error);
}

static void time_is_up(void *context)
{
    *(bool *)context = true;
}

static int pause_for(struct cluster *cluster, int64_t ms, struct error *error)
{
    bool is_up = false;
    struct event_timer *timer = event_timer_start(cluster->loop, ms, time_is_up, &is_up);
    int turned = 0;
    while (!is_up && !cluster->interrupted && turned >= 0)
        turned = event_loop_turn(cluster->loop, -1, error);
    if (!is_up)
        event_timer_cancel(timer);
    return turned < 0 ? -1 : 0;
}

int cluster_read(struct cluster *cluster, const char *path_and_query, struct buffer *text, struct error *error)
{
    size_t before = text->length;
    for (int64_t tries = 1, again_ms = READ_AGAIN_MS;; tries++, again_ms *= 2) {
        struct error cause = ERROR_INIT;
        if (read_once(cluster, path_and_query, text, &cause) == 0)
            return 0;
        if (cause.kind != ERROR_UNAVAILABLE || tries == READ_TRIES || cluster->interrupted ||
            kube_client_is_refused(cluster->client)) {
            if (error)
                *error = cause;
            return -1;
        }
        text->length = before;
        if (text->data)
            text->data[before] = '\0';
        if (pause_for(cluster, again_ms, error) < 0)
            return -1;
    }
}

int cluster_list(struct cluster *cluster, struct kube_resource resource, const char *name_space, const char *selector,
                 struct json **ret_items, struct error *error)
{
    SCOPED_BUFFER path = BUFFER_INIT(PATH_AND_QUERY_MAX), text = BUFFER_INIT(CLUSTER_ANSWER_MAX);
    struct resource_path of = {.resource = resource, .name_space = name_space};
    SCOPED_JSON *list = NULL;
    if (resource_path_append(&path, &of, error) < 0 ||
        resource_path_append_query(&path, "labelSelector", selector, error) < 0 ||
        cluster_read(cluster, buffer_text(&path), &text, error) < 0 ||
        json_parse(buffer_text(&text), text.length, CLUSTER_ANSWER_MAX, &list, error) < 0)
        return -1;
    struct json *items = json_member(list, "items");
    *ret_items = json_type(items) == JSON_ARRAY ? json_detach(list, items) : json_new_array();
    return 0;
}

/* ---------------------------------------------------------------- what belongs to a job */

int cluster_pods(struct cluster *cluster, const char *job, struct json **ret_items, struct error *error)
{
    SCOPED_FREE char *selector = memory_format("%s=%s", LABEL_JOB_NAME, job);
    return cluster_list(cluster, KUBE_PODS, cluster->name_space, selector, ret_items, error);
}
