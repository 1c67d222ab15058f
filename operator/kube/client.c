/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/client.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/memory.h"
#include "operator/kube/client_parts.h"

/* Watches and log streams hold connections besides those of the requests in flight. */
#define STREAM_CONNECTIONS 64

static int64_t otherwise(int64_t value, int64_t standard)
{
    return value > 0 ? value : standard;
}

static struct kube_client_options options_complete(const struct kube_client_options *given)
{
    struct kube_client_options options = given ? *given : (struct kube_client_options){0};
    options.user_agent = options.user_agent ? options.user_agent : "coxswain";
    options.max_in_flight = options.max_in_flight ? options.max_in_flight : 16;
    options.retry_base_ms = otherwise(options.retry_base_ms, 200);
    options.retry_ceiling_ms = otherwise(options.retry_ceiling_ms, 10000);
    options.token_refresh_ms = otherwise(options.token_refresh_ms, 60000);
    return options;
}

/* The strings are constants or belong to `more`. */
static const char **headers_new(const char *accept, const struct json *more)
{
    const char **headers = memory_allocate(json_count(more) + 2, sizeof *headers);
    size_t count = 0;
    headers[count++] = accept;
    for (const struct json *item = json_first(more); item; item = json_next(item))
        headers[count++] = json_string(item, "");
    return headers;
}

int kube_client_new(struct event_loop *loop, const struct kube_config *config, const struct kube_client_options *given,
                    struct kube_client **ret_client, struct error *error)
{
    struct kube_client_options options = options_complete(given);
    struct http_client *http;
    SCOPED(kube_config_release) struct kube_config own;
    int64_t expires_ms;
    kube_config_copy(config, &own);
    if ((!options.exec_plugins && kube_plugin_reject(&own, error) < 0) ||
        kube_plugin_load(&own, 0, event_loop_signals(loop), &expires_ms, error) < 0)
        return -1;
    struct http_client_options http_options = {
        .ca_pem = own.ca_pem,
        .client_cert_pem = own.client_cert_pem,
        .client_key_pem = own.client_key_pem,
        .tls_server_name = own.tls_server_name,
        .insecure_skip_tls_verify = own.insecure_skip_tls_verify,
        .proxy = own.proxy,
        .user_agent = options.user_agent,
        .max_connections = (int)options.max_in_flight + STREAM_CONNECTIONS,
        .http2 = options.http2,
    };
    if (http_client_new(loop, &http_options, &http, error) < 0)
        return -1;
    struct kube_client *client = memory_allocate(1, sizeof *client);
    client->loop = loop;
    client->http = http;
    client->options = options;
    client->options.user_agent = NULL; /* borrowed; the HTTP client has its copy */
    client->credentials_read_ns = client->plugin_run_ns = clock_monotonic_ns();
    client->expires_ms = expires_ms;
    client->headers[false] = headers_new("Accept: application/json", own.impersonation);
    client->headers[true] = headers_new(
        "Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json", own.impersonation);
    client->config = own;
    own = (struct kube_config){.server = NULL};
    for (int priority = 0; priority < KUBE_PRIORITY_COUNT; priority++)
        call_queue_init(&client->queues[priority]);
    request_metrics_init(&client->metrics);
    *ret_client = client;
    return 0;
}

void kube_client_free(struct kube_client *client)
{
    if (client == NULL)
        return;
    while (client->calls)
        kube_call_cancel(client->calls);
    http_client_free(client->http);
    for (int priority = 0; priority < KUBE_PRIORITY_COUNT; priority++)
        call_queue_release(&client->queues[priority]);
    request_metrics_release(&client->metrics);
    free(client->headers[false]);
    free(client->headers[true]);
    kube_config_release(&client->config);
    free(client);
}

struct event_loop *kube_client_loop(const struct kube_client *client)
{
    return client->loop;
}

size_t kube_client_waiting(const struct kube_client *client)
{
    size_t count = 0;
    for (int priority = 0; priority < KUBE_PRIORITY_COUNT; priority++)
        count += client->queues[priority].count;
    return count;
}

size_t kube_client_held_bytes(const struct kube_client *client)
{
    return client->held_bytes;
}

int kube_client_write_metrics(const struct kube_client *client, struct buffer *out, struct error *error)
{
    return request_metrics_write(&client->metrics, client->pending, out, error);
}

/* ---------------------------------------------------------------- requests */

static void call_start(struct kube_call *call, const char *name_space, const struct kube_call_options *options)
{
    call->flow = memory_copy_string(options->flow ? options->flow : name_space ? name_space : "");
    call->tries_max = options->tries_max > 0 ? options->tries_max : KUBE_TRIES_MAX;
    call->priority = options->priority;
    call->metadata_only = options->metadata_only;
    call->timeout_ms = otherwise(options->timeout_ms, KUBE_TIMEOUT_MS);
    if (call->failure)
        kube_call_fail_later(call);
    else if (call->priority == KUBE_URGENT)
        kube_call_send(call);
    else
        kube_call_queue(call);
}

static void url_begin(const struct kube_client *client, struct buffer *url)
{
    buffer_init(url, 16 * 1024);
    buffer_append_string(url, client->config.server, NULL);
}

static struct kube_call *call_path(struct kube_client *client, enum verb verb, const struct resource_path *path,
                                   const struct json *body, const char *const queries[][2],
                                   const struct kube_call_options *options)
{
    struct kube_call *call = kube_call_new(client, verb, path->resource.plural, options->answered, options->context);
    SCOPED_BUFFER url;
    url_begin(client, &url);
    struct error failure = ERROR_INIT;
    int result = resource_path_append(&url, path, &failure);
    for (; queries && (*queries)[0] && result == 0; queries++)
        result = resource_path_append_query(&url, (*queries)[0], (*queries)[1], &failure);
    call->url = buffer_take(&url);
    SCOPED_BUFFER text;
    buffer_init(&text, ANSWER_MAX);
    if (body && result == 0 && json_print(body, &text, &failure) == 0) {
        call->body_length = text.length;
        client->held_bytes += text.length;
        call->body = buffer_take(&text);
    }
    if (failure.kind != ERROR_NONE)
        *kube_call_failure(call) = failure;
    call_start(call, path->name_space, options);
    return call;
}

struct kube_call *kube_client_get(struct kube_client *client, const struct resource_path *path,
                                  const struct kube_call_options *options)
{
    SCOPED_FREE char *limit = options->list_limit > 0 ? memory_format("%" PRId64, options->list_limit) : NULL;
    const char *const queries[][2] = {{"limit", limit}, {NULL, NULL}};
    return call_path(client, VERB_GET, path, NULL, queries, options);
}

static const char *const query_strict[2] = {"fieldValidation", "Strict"};

struct kube_call *kube_client_create(struct kube_client *client, const struct resource_path *path,
                                     const struct json *object, const struct kube_call_options *options)
{
    const char *queries[3][2] = {{NULL, NULL}};
    size_t count = 0;
    if (options->strict)
        memcpy(queries[count++], query_strict, sizeof queries[0]);
    if (options->dry_run)
        memcpy(queries[count++], (const char *[2]){"dryRun", "All"}, sizeof queries[0]);
    return call_path(client, VERB_CREATE, path, object, (const char *const(*)[2])queries, options);
}

struct kube_call *kube_client_replace(struct kube_client *client, const struct resource_path *path,
                                      const struct json *object, const struct kube_call_options *options)
{
    return call_path(client, VERB_REPLACE, path, object, NULL, options);
}

struct kube_call *kube_client_patch(struct kube_client *client, const struct resource_path *path,
                                    const struct json *patch, const struct kube_call_options *options)
{
    const char *const queries[][2] = {{query_strict[0], query_strict[1]}, {NULL, NULL}};
    return call_path(client, VERB_PATCH, path, patch, options->strict ? queries : NULL, options);
}

struct kube_call *kube_client_apply(struct kube_client *client, const struct resource_path *path,
                                    const struct json *config, const char *manager,
                                    const struct kube_call_options *options)
{
    const char *const queries[][2] = {{"fieldManager", manager}, {"force", "true"}, {NULL, NULL}};
    return call_path(client, VERB_APPLY, path, config, queries, options);
}

struct kube_call *kube_client_delete(struct kube_client *client, const struct resource_path *path,
                                     const struct kube_delete_options *what, const struct kube_call_options *options)
{
    SCOPED_JSON *body = json_new_object();
    json_set_string(body, "apiVersion", "v1");
    json_set_string(body, "kind", "DeleteOptions");
    if (what->uid || what->resource_version) {
        struct json *preconditions = json_set_object(body, "preconditions");
        json_set_string(preconditions, "uid", what->uid);
        json_set_string(preconditions, "resourceVersion", what->resource_version);
    }
    json_set_string(body, "propagationPolicy", what->propagation);
    if (what->grace_seconds >= 0)
        json_set_integer(body, "gracePeriodSeconds", what->grace_seconds);
    if (what->dry_run)
        json_append_string(json_set_array(body, "dryRun"), "All");
    return call_path(client, VERB_DELETE, path, body, NULL, options);
}

struct kube_call *kube_client_stream(struct kube_client *client, const struct kube_stream_options *options)
{
    struct kube_call *call = kube_call_new(client, VERB_STREAM, options->resource ? options->resource : "",
                                           options->answered, options->context);
    call->url = memory_format("%s%s", client->config.server, options->path_and_query);
    call->counted_verb = options->verb ? options->verb : kube_verbs[VERB_STREAM].name;
    call->on_data = options->on_data;
    call->idle_timeout_ms = options->idle_timeout_ms;
    call->timeout_ms = options->timeout_ms;
    kube_call_send(call);
    return call;
}

/* ---------------------------------------------------------------- write gate */

void kube_client_set_write_gate(struct kube_client *client, kube_write_gate *is_open, void *context)
{
    client->gate = is_open;
    client->gate_context = context;
}

static struct kube_call *find_write(const struct kube_client *client)
{
    struct kube_call *call = client->calls;
    while (call && (call->priority == KUBE_URGENT || !kube_verbs[call->verb].mutates))
        call = call->next;
    return call;
}

void kube_client_abort_writes(struct kube_client *client)
{
    /* Start from the front each time: a callback may end or start other calls. */
    for (struct kube_call *call; (call = find_write(client)) != NULL;)
        kube_call_cancel(call);
}
