/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/clock.h"
#include "common/memory.h"
#include "operator/kube/backoff.h"
#include "operator/kube/client_parts.h"
#include "operator/kube/object_text.h"
#include "operator/kube/status.h"

/* Each priority keeps 1/SHARE of max_in_flight while higher priorities wait. */
#define SHARE 8

const struct kube_verb kube_verbs[] = {
    [VERB_GET] = {"get", "GET", false, true, NULL},
    [VERB_LIST] = {"list", "GET", false, true, NULL},
    [VERB_CREATE] = {"create", "POST", true, false, "application/json"},
    [VERB_REPLACE] = {"update", "PUT", true, true, "application/json"},
    [VERB_PATCH] = {"patch", "PATCH", true, true, "application/merge-patch+json"},
    [VERB_APPLY] = {"patch", "PATCH", true, true, "application/apply-patch+yaml"},
    [VERB_DELETE] = {"delete", "DELETE", true, true, "application/json"},
    [VERB_STREAM] = {"get", "GET", false, false, NULL},
};

struct kube_call *kube_call_new(struct kube_client *client, enum verb verb, const char *resource,
                                kube_answered *answered, void *context)
{
    struct kube_call *call = memory_allocate(1, sizeof *call);
    *call = (struct kube_call){
        .client = client,
        .next = client->calls,
        .verb = verb,
        .counted_verb = kube_verbs[verb].name,
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

/* ---------------------------------------------------------------- end of a call */

static void queue_serve(struct kube_client *client);

static struct call_queue *queue_of(struct kube_call *call)
{
    return &call->client->queues[call->priority];
}

static void count_in_flight(struct kube_call *call, bool counts)
{
    int change = (int)counts - (int)call->counts;
    call->client->in_flight += (unsigned)change;
    call->client->in_flight_of[call->priority] += (unsigned)change;
    call->counts = counts;
}

static void call_unlink(struct kube_call *call)
{
    struct kube_client *client = call->client;
    call_queue_remove(queue_of(call), &call->ticket);
    event_timer_cancel(call->timer);
    event_timer_cancel(call->deadline);
    count_in_flight(call, false);
    client->held_bytes -= call->body_length;
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

struct error *kube_call_failure(struct kube_call *call)
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

void kube_call_fail_later(struct kube_call *call)
{
    event_timer_cancel(call->timer);
    call->timer = event_timer_start(call->client->loop, 0, on_failure_due, call);
}

static void transfer_drop(struct kube_call *call)
{
    if (call->transfer)
        http_transfer_cancel(call->transfer); /* on_done ignores its end */
}

void kube_call_cancel(struct kube_call *call)
{
    error_set(kube_call_failure(call), ERROR_CANCELLED, "the request was cancelled");
    transfer_drop(call);
    call_fail(call);
}

static void on_deadline(void *context)
{
    struct kube_call *call = context;
    call->deadline = NULL;
    struct error last = call->failure ? *call->failure : (struct error)ERROR_INIT;
    if (call->failure)
        error_wrap(&last, "timed out after %d tries", call->tries);
    else
        error_set(&last, ERROR_TIMEOUT, "%s %s: no answer in time", kube_verbs[call->verb].method, call->url);
    last.kind = ERROR_TIMEOUT;
    error_set(kube_call_failure(call), ERROR_CANCELLED, "timed out");
    transfer_drop(call);
    *call->failure = last;
    call_fail(call);
}

/* ---------------------------------------------------------------- answers */

/* Prepared as in a watch: any object that can be stored must be readable, and managedFields may nest too deep. */
static struct json *body_parse(const struct http_response *response)
{
    struct json *body = NULL;
    SCOPED_BUFFER text;
    buffer_init(&text, ANSWER_MAX);
    if (response->body_length == 0 || buffer_append(&text, response->body, response->body_length, NULL) < 0)
        return NULL;
    object_text_prepare(&text);
    json_parse(text.data, text.length, ANSWER_MAX, &body, NULL);
    return body;
}

static bool is_success(int status)
{
    return status >= 200 && status < 300;
}

/* The server says that it did nothing, so any verb may be retried. */
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
    if (call->priority == KUBE_URGENT || call->verb == VERB_STREAM) {
        kube_call_send(call);
        return;
    }
    kube_call_queue(call);
}

/* Returns true if a retry was scheduled. */
static bool call_repeat(struct kube_call *call, const struct http_response *response, int64_t retry_after_ms)
{
    const struct kube_client_options *options = &call->client->options;
    bool may_repeat =
        was_not_done(response, retry_after_ms) || (kube_verbs[call->verb].repeatable && is_transient(response));
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

/* The server refused our credentials, or we do not trust its certificate. */
static bool is_mistrust(const struct kube_config *config, const struct http_response *response)
{
    if (response->error)
        return response->error->kind == ERROR_FORBIDDEN && config->ca_file;
    return response->status == 401 && (config->token_file || config->exec);
}

/* Token or CA may have been replaced since we read them. Returns true if a retry was scheduled. */
static bool call_repeat_with_new_credentials(struct kube_call *call, const struct http_response *response)
{
    if (!is_mistrust(&call->client->config, response))
        return false;
    kube_client_renew_credentials(call->client);
    if (call->credentials_renewed)
        return false;
    call->credentials_renewed = true;
    call->timer = event_timer_start(call->client->loop, 0, on_retry_due, call);
    return true;
}

/* Only a delete may have an empty answer. A stream's body was passed on as it arrived. */
static bool is_owed_object(const struct kube_call *call)
{
    return call->verb != VERB_DELETE && call->verb != VERB_STREAM;
}

static void plugin_failure_append(const struct error *plugin, struct error *failure)
{
    SCOPED_FREE char *refusal = memory_copy_string(failure->message);
    if (plugin->kind != ERROR_NONE)
        error_set(failure, failure->kind, "%s; and its credentials could not be renewed: %s", refusal, plugin->message);
}

static void failure_take(struct kube_call *call, const struct http_response *response, const struct json *body)
{
    struct error failure = ERROR_INIT;
    if (response->error)
        failure = *response->error;
    else if (!is_success(response->status))
        kube_status_to_error(response->status, body, &failure);
    else if (body == NULL && (response->body_length > 0 || is_owed_object(call)))
        error_set(&failure, ERROR_CORRUPT, "the API server's answer is not JSON");
    failure.http_status = response->status;
    if (response->status == 401)
        plugin_failure_append(&call->client->plugin_failure, &failure);
    if (failure.kind != ERROR_NONE)
        *kube_call_failure(call) = failure;
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

/* A try that can be repeated gets half of the time left, so that a dead connection leaves time for a retry. */
static int64_t try_timeout_ms(const struct kube_call *call)
{
    if (call->deadline_ns == INT64_MAX)
        return 0;
    int64_t left_ms = (call->deadline_ns - clock_monotonic_ns()) / NS_PER_MS;
    bool may_repeat = kube_verbs[call->verb].repeatable && call->tries + 1 < call->tries_max;
    int64_t timeout_ms = may_repeat ? left_ms / 2 : left_ms;
    return timeout_ms > 1 ? timeout_ms : 1;
}

static bool gate_lets_through(const struct kube_call *call)
{
    const struct kube_client *client = call->client;
    return !kube_verbs[call->verb].mutates || call->priority == KUBE_URGENT || client->gate == NULL ||
           client->gate(client->gate_context);
}

static void set_deadline(struct kube_call *call)
{
    if (call->timeout_ms <= 0 || call->deadline_ns != INT64_MAX)
        return;
    call->deadline_ns = clock_monotonic_ns() + call->timeout_ms * NS_PER_MS;
    call->deadline = event_timer_start(call->client->loop, call->timeout_ms, on_deadline, call);
}

void kube_call_send(struct kube_call *call)
{
    struct kube_client *client = call->client;
    if (!gate_lets_through(call)) {
        error_set(kube_call_failure(call), ERROR_CANCELLED, "writes are stopped: the lease is not held");
        kube_call_fail_later(call);
        return;
    }
    set_deadline(call);
    struct http_request request = {
        .method = kube_verbs[call->verb].method,
        .url = call->url,
        .headers = client->headers[call->metadata_only],
        .body = call->body,
        .body_length = call->body_length,
        .content_type = kube_verbs[call->verb].content_type,
        .bearer_token = kube_client_token(client),
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
    count_in_flight(call, call->priority != KUBE_URGENT && call->verb != VERB_STREAM);
    call->transfer = http_client_start(client->http, &request);
}

/* From highest to lowest priority. */
static const enum kube_priority ranks[] = {KUBE_HIGH, KUBE_NORMAL, KUBE_LOW};
#define RANKS ((unsigned)(sizeof ranks / sizeof *ranks))

/* If max_in_flight is too small to share, the higher priority gets it all. */
static bool has_share(const struct kube_client *client, unsigned rank)
{
    unsigned share = client->options.max_in_flight / SHARE;
    return client->options.max_in_flight > RANKS - rank && client->in_flight_of[ranks[rank]] < (share > 0 ? share : 1);
}

/* Removes the next call to send. At least one must be waiting. */
static struct kube_call *queue_next(struct kube_client *client)
{
    unsigned rank = RANKS - 1;
    while (rank > 0 && (client->queues[ranks[rank]].count == 0 || !has_share(client, rank)))
        rank--;
    while (client->queues[ranks[rank]].count == 0)
        rank++;
    return (struct kube_call *)call_queue_pop(&client->queues[ranks[rank]]);
}

static void queue_serve(struct kube_client *client)
{
    while (client->in_flight < client->options.max_in_flight && kube_client_waiting(client) > 0)
        kube_call_send(queue_next(client));
}

void kube_call_queue(struct kube_call *call)
{
    call_queue_push(queue_of(call), call->flow, &call->ticket);
    queue_serve(call->client);
}
