/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/client.h"

#include <string.h>

#include "common/clock.h"
#include "common/memory.h"
#include "operator/kube/backoff.h"
#include "operator/kube/call_queue.h"
#include "operator/kube/kubeconfig.h"
#include "operator/kube/request_metrics.h"
#include "operator/kube/status.h"

#define NS_PER_MS 1000000
#define ANSWER_MAX (16 * 1024 * 1024)
/* Watches and log streams hold connections besides those of the requests in flight. */
#define STREAM_CONNECTIONS 64
/* The part of the wire that late requests may have while others wait. */
#define LATE_SHARE 8

enum verb { VERB_GET, VERB_LIST, VERB_CREATE, VERB_REPLACE, VERB_PATCH, VERB_APPLY, VERB_DELETE, VERB_STREAM };

static const struct {
    const char *name; /* as RBAC and the counters call it */
    const char *method;
    bool mutates;
    bool repeatable; /* doing it twice leaves what doing it once leaves */
    const char *content_type;
} verbs[] = {
    [VERB_GET] = {"get", "GET", false, true, NULL},
    [VERB_LIST] = {"list", "GET", false, true, NULL},
    [VERB_CREATE] = {"create", "POST", true, false, "application/json"},
    [VERB_REPLACE] = {"update", "PUT", true, true, "application/json"},
    [VERB_PATCH] = {"patch", "PATCH", true, true, "application/merge-patch+json"},
    [VERB_APPLY] = {"patch", "PATCH", true, true, "application/apply-patch+yaml"},
    [VERB_DELETE] = {"delete", "DELETE", true, true, "application/json"},
    [VERB_STREAM] = {"get", "GET", false, false, NULL},
};

struct kube_client {
    struct event_loop *loop;
    struct http_client *http;
    struct kube_config config;
    int64_t credentials_read_ns;
    struct kube_client_options options;
    struct kube_call *calls; /* all that have not ended */
    size_t pending;
    struct call_queue queue, late_queue;
    unsigned in_flight, late_in_flight;
    kube_write_gate *gate;
    void *gate_context;
    struct request_metrics metrics;
};

struct kube_call {
    struct call_ticket ticket; /* first member: the queue hands it back */
    struct kube_client *client;
    struct kube_call *previous, *next;
    enum verb verb;
    const char *counted_verb;
    char *resource;
    char *url;
    char *flow;
    char *body;
    size_t body_length;
    bool urgent, late;
    bool counts; /* against max_in_flight, now */
    bool credentials_renewed;
    int tries, tries_max;
    int64_t deadline_ns; /* INT64_MAX: none */
    int64_t idle_timeout_ms;
    int64_t sent_ns;
    struct http_transfer *transfer;
    struct event_timer *timer; /* back-off, or a failure to be told */
    struct event_timer *deadline;
    struct error *failure; /* NULL: none so far; most calls never need its kilobyte */
    http_data *on_data;
    kube_answered *answered;
    void *context;
};

/* ---------------------------------------------------------------- client */

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

int kube_client_new(struct event_loop *loop, const struct kube_config *config, const struct kube_client_options *given,
                    struct kube_client **ret_client, struct error *error)
{
    struct kube_client_options options = options_complete(given);
    struct http_client *http;
    struct http_client_options http_options = {
        .ca_pem = config->ca_pem,
        .client_cert_pem = config->client_cert_pem,
        .client_key_pem = config->client_key_pem,
        .tls_server_name = config->tls_server_name,
        .insecure_skip_tls_verify = config->insecure_skip_tls_verify,
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
    client->credentials_read_ns = clock_monotonic_ns();
    kube_config_copy(config, &client->config);
    call_queue_init(&client->queue);
    call_queue_init(&client->late_queue);
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
    call_queue_release(&client->queue);
    call_queue_release(&client->late_queue);
    request_metrics_release(&client->metrics);
    kube_config_release(&client->config);
    free(client);
}

struct event_loop *kube_client_loop(const struct kube_client *client)
{
    return client->loop;
}

size_t kube_client_waiting(const struct kube_client *client)
{
    return client->queue.count + client->late_queue.count;
}

int kube_client_write_metrics(const struct kube_client *client, struct buffer *out, struct error *error)
{
    return request_metrics_write(&client->metrics, client->pending, out, error);
}

/* ---------------------------------------------------------------- credentials */

/* A token that cannot be read keeps the old one: it may still be good, and 401 tells. */
static void token_renew(struct kube_client *client)
{
    char *token;
    if (client->config.token_file == NULL || kube_token_read(client->config.token_file, &token, NULL) < 0)
        return;
    free(client->config.token);
    client->config.token = token;
}

/* Likewise; a new one is for connections to come. */
static void authority_renew(struct kube_client *client)
{
    char *pem;
    if (client->config.ca_file == NULL || kube_authority_read(client->config.ca_file, &pem, NULL) < 0)
        return;
    if (strcmp(pem, client->config.ca_pem) != 0)
        http_client_set_trust(client->http, pem);
    free(client->config.ca_pem);
    client->config.ca_pem = pem;
}

static void credentials_renew(struct kube_client *client)
{
    client->credentials_read_ns = clock_monotonic_ns();
    token_renew(client);
    authority_renew(client);
}

static const char *token_current(struct kube_client *client)
{
    if (clock_monotonic_ns() - client->credentials_read_ns >= client->options.token_refresh_ms * NS_PER_MS)
        credentials_renew(client);
    return client->config.token;
}

/* ---------------------------------------------------------------- end of a call */

static void queue_serve(struct kube_client *client);

static struct call_queue *queue_of(struct kube_call *call)
{
    return call->late ? &call->client->late_queue : &call->client->queue;
}

static void count_in_flight(struct kube_call *call, bool counts)
{
    int change = (int)counts - (int)call->counts;
    call->client->in_flight += (unsigned)change;
    call->client->late_in_flight += call->late ? (unsigned)change : 0;
    call->counts = counts;
}

static void call_unlink(struct kube_call *call)
{
    struct kube_client *client = call->client;
    call_queue_remove(queue_of(call), &call->ticket);
    event_timer_cancel(call->timer);
    event_timer_cancel(call->deadline);
    count_in_flight(call, false);
    if (call->verb != VERB_STREAM)
        client->pending--;
    if (call->previous)
        call->previous->next = call->next;
    else
        client->calls = call->next;
    if (call->next)
        call->next->previous = call->previous;
}

static void call_free(struct kube_call *call)
{
    free(call->failure);
    free(call->resource);
    free(call->url);
    free(call->flow);
    free(call->body);
    free(call);
}

/* The callback comes last: it may start calls, cancel others, or free the client. */
static void call_end(struct kube_call *call, const struct kube_answer *answer)
{
    struct kube_client *client = call->client;
    call_unlink(call);
    queue_serve(client);
    call->answered(call->context, answer);
    call_free(call);
}

static struct error *failure_slot(struct kube_call *call)
{
    if (call->failure == NULL)
        call->failure = memory_allocate(1, sizeof *call->failure);
    return call->failure;
}

static void call_fail(struct kube_call *call)
{
    call_end(call, &(struct kube_answer){.reason = "", .retry_after_ms = -1, .error = call->failure});
}

static void on_failure_due(void *context)
{
    struct kube_call *call = context;
    call->timer = NULL;
    call_fail(call);
}

/* For failures found while a caller still holds nothing: callbacks never come from within what starts a call. */
static void call_fail_later(struct kube_call *call)
{
    event_timer_cancel(call->timer);
    call->timer = event_timer_start(call->client->loop, 0, on_failure_due, call);
}

static void transfer_drop(struct kube_call *call)
{
    if (call->transfer)
        http_transfer_cancel(call->transfer); /* its end is passed over, see on_done */
}

void kube_call_cancel(struct kube_call *call)
{
    error_set(failure_slot(call), ERROR_CANCELLED, "the request was given up");
    transfer_drop(call);
    call_fail(call);
}

static void on_deadline(void *context)
{
    struct kube_call *call = context;
    call->deadline = NULL;
    struct error last = call->failure ? *call->failure : (struct error)ERROR_INIT;
    if (call->failure)
        error_wrap(&last, "not done in time, after %d tries", call->tries);
    else
        error_set(&last, ERROR_TIMEOUT, "%s %s: no answer in time", verbs[call->verb].method, call->url);
    last.kind = ERROR_TIMEOUT;
    error_set(failure_slot(call), ERROR_CANCELLED, "timed out");
    transfer_drop(call);
    *call->failure = last;
    call_fail(call);
}

/* ---------------------------------------------------------------- answers */

static void call_send(struct kube_call *call);

static struct json *body_parse(const struct http_response *response)
{
    struct json *body = NULL;
    if (response->body_length > 0)
        json_parse(response->body, response->body_length, ANSWER_MAX, &body, NULL);
    return body;
}

static bool is_success(int status)
{
    return status >= 200 && status < 300;
}

/* The server says itself that it did nothing: any verb may be repeated. */
static bool was_not_done(const struct http_response *response, int64_t retry_after_ms)
{
    return response->status == 429 || (response->status == 503 && retry_after_ms >= 0);
}

static bool is_transient(const struct http_response *response)
{
    if (response->error)
        return response->error->kind == ERROR_UNAVAILABLE || response->error->kind == ERROR_TIMEOUT;
    return response->status >= 500 && response->status != 501;
}

static void on_retry_due(void *context)
{
    struct kube_call *call = context;
    call->timer = NULL;
    if (call->urgent) {
        call_send(call);
        return;
    }
    call_queue_push(queue_of(call), call->flow, &call->ticket);
    queue_serve(call->client);
}

/* True when the call goes on. */
static bool call_repeat(struct kube_call *call, const struct http_response *response, int64_t retry_after_ms)
{
    const struct kube_client_options *options = &call->client->options;
    bool may_repeat =
        was_not_done(response, retry_after_ms) || (verbs[call->verb].repeatable && is_transient(response));
    if (call->verb == VERB_STREAM || !may_repeat || call->tries >= call->tries_max)
        return false;
    int64_t delay_ms = retry_after_ms >= 0 ? jitter_between(retry_after_ms, retry_after_ms + retry_after_ms / 10)
                                           : backoff_delay_ms(options->retry_base_ms, options->retry_ceiling_ms,
                                                              (unsigned)call->tries - 1);
    if (clock_monotonic_ns() + delay_ms * NS_PER_MS >= call->deadline_ns)
        return false;
    call->client->metrics.retries++;
    call->timer = event_timer_start(call->client->loop, delay_ms, on_retry_due, call);
    return true;
}

/* Either side does not know the other. */
static bool is_mistrust(const struct kube_config *config, const struct http_response *response)
{
    if (response->error)
        return response->error->kind == ERROR_FORBIDDEN && config->ca_file;
    return response->status == 401 && config->token_file;
}

/* It may only mean that token or authority were replaced since we read them. */
static bool call_repeat_with_new_credentials(struct kube_call *call, const struct http_response *response)
{
    if (!is_mistrust(&call->client->config, response))
        return false;
    credentials_renew(call->client);
    if (call->verb == VERB_STREAM || call->credentials_renewed)
        return false;
    call->credentials_renewed = true;
    call->timer = event_timer_start(call->client->loop, 0, on_retry_due, call);
    return true;
}

static void failure_take(struct kube_call *call, const struct http_response *response, const struct json *body)
{
    struct error failure = ERROR_INIT;
    if (response->error)
        failure = *response->error;
    else if (!is_success(response->status))
        kube_status_to_error(response->status, body, &failure);
    else if (body == NULL && response->body_length > 0)
        error_set(&failure, ERROR_CORRUPT, "the API server's answer is not JSON");
    failure.http_status = response->status;
    if (failure.kind != ERROR_NONE)
        *failure_slot(call) = failure;
}

static void call_conclude(struct kube_call *call, const struct http_response *response, const struct json *body,
                          int64_t retry_after_ms)
{
    const char *reason = is_success(response->status) ? "" : json_string_at(body, "reason", "");
    struct kube_answer answer = {
        .status = response->status,
        .reason = reason,
        .object = body,
        .retry_after_ms = retry_after_ms,
        .quota_exceeded = kube_status_is_quota(response->status, body),
        .error = call->failure,
    };
    call_end(call, &answer);
}

static int64_t retry_after_of(const struct http_response *response, const struct json *body)
{
    if (response->retry_after_ms >= 0 || is_success(response->status))
        return response->retry_after_ms;
    return kube_status_retry_after_ms(body);
}

static void on_done(void *context, const struct http_response *response)
{
    struct kube_call *call = context;
    struct kube_client *client = call->client;
    call->transfer = NULL;
    bool was_dropped = call->failure && call->failure->kind == ERROR_CANCELLED;
    if (was_dropped)
        return;
    double seconds = (double)(clock_monotonic_ns() - call->sent_ns) / 1e9;
    request_metrics_add(&client->metrics, call->counted_verb, call->resource, response->status, seconds);
    count_in_flight(call, false);
    SCOPED_JSON *body = body_parse(response);
    int64_t retry_after_ms = retry_after_of(response, body);
    failure_take(call, response, body);
    if (call_repeat_with_new_credentials(call, response) || call_repeat(call, response, retry_after_ms))
        queue_serve(client);
    else
        call_conclude(call, response, body, retry_after_ms);
}

static int on_stream_data(void *context, const char *bytes, size_t length, struct error *error)
{
    struct kube_call *call = context;
    return call->on_data(call->context, bytes, length, error);
}

/* ---------------------------------------------------------------- sending */

/* What can be repeated leaves time for it: a try on a dead connection may take half of what is left. */
static int64_t try_timeout_ms(const struct kube_call *call)
{
    if (call->deadline_ns == INT64_MAX)
        return 0;
    int64_t left_ms = (call->deadline_ns - clock_monotonic_ns()) / NS_PER_MS;
    bool may_repeat = verbs[call->verb].repeatable && call->tries + 1 < call->tries_max;
    int64_t timeout_ms = may_repeat ? left_ms / 2 : left_ms;
    return timeout_ms > 1 ? timeout_ms : 1;
}

static bool gate_lets_through(const struct kube_call *call)
{
    const struct kube_client *client = call->client;
    return !verbs[call->verb].mutates || call->urgent || client->gate == NULL || client->gate(client->gate_context);
}

static void call_send(struct kube_call *call)
{
    static const char *const headers[] = {"Accept: application/json", NULL};
    struct kube_client *client = call->client;
    if (!gate_lets_through(call)) {
        error_set(failure_slot(call), ERROR_CANCELLED, "writes are stopped: the lease is not held");
        call_fail_later(call);
        return;
    }
    struct http_request request = {
        .method = verbs[call->verb].method,
        .url = call->url,
        .headers = headers,
        .body = call->body,
        .body_length = call->body_length,
        .content_type = verbs[call->verb].content_type,
        .bearer_token = token_current(client),
        .max_body = call->on_data ? 0 : ANSWER_MAX,
        .timeout_ms = try_timeout_ms(call),
        .idle_timeout_ms = call->idle_timeout_ms,
        .on_data = call->on_data ? on_stream_data : NULL,
        .done = on_done,
        .context = call,
    };
    free(call->failure);
    call->failure = NULL;
    call->tries++;
    call->sent_ns = clock_monotonic_ns();
    count_in_flight(call, !call->urgent && call->verb != VERB_STREAM);
    call->transfer = http_client_start(client->http, &request);
}

/* Whose turn it is; NULL: nobody waits. */
static struct kube_call *queue_next(struct kube_client *client)
{
    unsigned share = client->options.max_in_flight / LATE_SHARE;
    bool late_has_share = client->late_in_flight < (share > 0 ? share : 1) && client->late_queue.count > 0;
    bool late_only = client->queue.count == 0;
    bool late = late_only || (late_has_share && client->options.max_in_flight > 1);
    return (struct kube_call *)call_queue_pop(late ? &client->late_queue : &client->queue);
}

static void queue_serve(struct kube_client *client)
{
    while (client->in_flight < client->options.max_in_flight && kube_client_waiting(client) > 0)
        call_send(queue_next(client));
}

/* ---------------------------------------------------------------- starting */

static struct kube_call *call_new(struct kube_client *client, enum verb verb, const char *resource,
                                  kube_answered *answered, void *context)
{
    struct kube_call *call = memory_allocate(1, sizeof *call);
    *call = (struct kube_call){
        .client = client,
        .next = client->calls,
        .verb = verb,
        .counted_verb = verbs[verb].name,
        .resource = memory_copy_string(resource),
        .deadline_ns = INT64_MAX,
        .answered = answered,
        .context = context,
    };
    if (client->calls)
        client->calls->previous = call;
    client->calls = call;
    client->pending += verb != VERB_STREAM;
    return call;
}

static void call_start(struct kube_call *call, const char *name_space, const struct kube_call_options *options)
{
    struct kube_client *client = call->client;
    int64_t timeout_ms = otherwise(options->timeout_ms, KUBE_TIMEOUT_MS);
    call->flow = memory_copy_string(options->flow ? options->flow : name_space ? name_space : "");
    call->tries_max = options->tries_max > 0 ? options->tries_max : KUBE_TRIES_MAX;
    call->urgent = options->priority == KUBE_URGENT;
    call->late = options->priority == KUBE_LATE;
    call->deadline_ns = clock_monotonic_ns() + timeout_ms * NS_PER_MS;
    call->deadline = event_timer_start(client->loop, timeout_ms, on_deadline, call);
    if (call->failure) {
        call_fail_later(call);
    } else if (call->urgent) {
        call_send(call);
    } else {
        call_queue_push(queue_of(call), call->flow, &call->ticket);
        queue_serve(client);
    }
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
    struct kube_call *call = call_new(client, verb, path->resource.plural, options->answered, options->context);
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
        call->body = buffer_take(&text);
    }
    if (failure.kind != ERROR_NONE)
        *failure_slot(call) = failure;
    call_start(call, path->name_space, options);
    return call;
}

struct kube_call *kube_client_get(struct kube_client *client, const struct resource_path *path,
                                  const struct kube_call_options *options)
{
    return call_path(client, VERB_GET, path, NULL, NULL, options);
}

struct kube_call *kube_client_create(struct kube_client *client, const struct resource_path *path,
                                     const struct json *object, const struct kube_call_options *options)
{
    return call_path(client, VERB_CREATE, path, object, NULL, options);
}

struct kube_call *kube_client_replace(struct kube_client *client, const struct resource_path *path,
                                      const struct json *object, const struct kube_call_options *options)
{
    return call_path(client, VERB_REPLACE, path, object, NULL, options);
}

struct kube_call *kube_client_patch(struct kube_client *client, const struct resource_path *path,
                                    const struct json *patch, const struct kube_call_options *options)
{
    return call_path(client, VERB_PATCH, path, patch, NULL, options);
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
    return call_path(client, VERB_DELETE, path, body, NULL, options);
}

struct kube_call *kube_client_stream(struct kube_client *client, const struct kube_stream_options *options)
{
    struct kube_call *call =
        call_new(client, VERB_STREAM, options->resource ? options->resource : "", options->answered, options->context);
    call->url = memory_format("%s%s", client->config.server, options->path_and_query);
    call->counted_verb = options->verb ? options->verb : verbs[VERB_STREAM].name;
    call->on_data = options->on_data;
    call->idle_timeout_ms = options->idle_timeout_ms;
    if (options->timeout_ms > 0) {
        call->deadline_ns = clock_monotonic_ns() + options->timeout_ms * NS_PER_MS;
        call->deadline = event_timer_start(client->loop, options->timeout_ms, on_deadline, call);
    }
    call_send(call);
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
    while (call && (call->urgent || !verbs[call->verb].mutates))
        call = call->next;
    return call;
}

void kube_client_abort_writes(struct kube_client *client)
{
    /* From the front each time, since a callback may have ended or started any other. */
    for (struct kube_call *call; (call = find_write(client)) != NULL;)
        kube_call_cancel(call);
}
