/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/client.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/json.h"
#include "common/memory.h"
#include "operator/kube/backoff.h"
#include "operator/kube/call_queue.h"
#include "operator/kube/credentials.h"
#include "operator/kube/exec_plugin.h"
#include "operator/kube/object_text.h"
#include "operator/kube/request_metrics.h"
#include "operator/kube/status.h"

#define NS_PER_MS 1000000
#define ANSWER_MAX (20 * 1024 * 1024)
/* Watches and log streams hold connections besides those of the requests in flight. */
#define STREAM_CONNECTIONS 64
/* Each priority keeps 1/SHARE of max_in_flight while higher priorities wait. */
#define SHARE 8
/* Shortest time between two runs of a plugin, so that refused credentials do not run it for each request. */
#define PLUGIN_PAUSE_MS 5000
/* Longest pause after failures; the pause doubles, because a run blocks the loop. */
#define PLUGIN_PAUSE_MAX_MS 300000

enum verb { VERB_GET, VERB_LIST, VERB_CREATE, VERB_REPLACE, VERB_PATCH, VERB_APPLY, VERB_DELETE, VERB_STREAM };

struct kube_verb {
    const char *name; /* as in RBAC and in metrics */
    const char *method;
    bool mutates;
    bool repeatable; /* idempotent */
    const char *content_type;
};

static const struct kube_verb verbs[] = {
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
    const char **headers[2]; /* of every request, NULL-terminated; indexed by metadata_only */
    int64_t credentials_read_ns;
    int64_t plugin_run_ns;       /* when the credential plugin last ran */
    int64_t plugin_pause_ms;     /* shortest time until it runs again; 0: the default */
    int64_t expires_ms;          /* when its credentials expire, Unix time; INT64_MAX: unknown or never */
    struct error plugin_failure; /* why its last run failed; ERROR_NONE: it succeeded */
    struct kube_client_options options;
    bool answered, refused;  /* the server has answered a request; it has refused a connection */
    struct kube_call *calls; /* all calls that have not ended */
    size_t held_bytes;
    size_t pending;
    struct call_queue queues[KUBE_PRIORITY_COUNT]; /* by priority; that of KUBE_URGENT stays empty */
    unsigned in_flight, in_flight_of[KUBE_PRIORITY_COUNT];
    kube_write_gate *gate;
    void *gate_context;
    struct request_metrics metrics;
};

struct kube_call {
    struct call_ticket ticket; /* first member, so that a ticket from the queue is the call */
    struct kube_client *client;
    struct kube_call *previous, *next;
    enum verb verb;
    const char *counted_verb;
    char *resource;
    char *url;
    char *flow;
    char *body;
    size_t body_length;
    enum kube_priority priority;
    bool metadata_only;
    bool counts; /* now counted in the client's in_flight */
    bool credentials_renewed;
    int tries, tries_max;
    int64_t timeout_ms;  /* sets deadline_ns when the call is first sent; 0: none */
    int64_t deadline_ns; /* INT64_MAX: none, or not sent yet */
    int64_t idle_timeout_ms;
    int64_t sent_ns;
    struct http_transfer *transfer;
    struct event_timer *timer; /* until the next try, or until a failure is reported */
    struct event_timer *deadline;
    struct error *failure; /* allocated on first failure, since it is a kilobyte; NULL: none */
    http_data *on_data;
    kube_answered *answered;
    void *context;
};

/* ---------------------------------------------------------------- credentials */

static const char *user_of(const struct kube_config *config)
{
    return json_string_at(config->exec, "user", "");
}

/* Fails with ERROR_UNSUPPORTED when the user of the configuration needs a credential plugin. */
static int plugin_reject(const struct kube_config *config, struct error *error)
{
    return config->exec
               ? error_set(error, ERROR_UNSUPPORTED,
                           "user '%s': 'exec' is not supported here; use a token, a tokenFile or a client certificate",
                           user_of(config))
               : 0;
}

/* Runs the config's credential plugin, if it has one, and stores the credentials in the config. `timeout_ms` and
 * `cancel` as in exec_plugin_run. */
static int plugin_load(struct kube_config *config, int64_t timeout_ms, int cancel, int64_t *ret_expires_ms,
                       struct error *error)
{
    struct exec_credential credential;
    if (!config->exec) {
        *ret_expires_ms = INT64_MAX;
        return 0;
    }
    if (exec_plugin_run(json_member(config->exec, "plugin"), json_member(config->exec, "cluster"), timeout_ms, cancel,
                        &credential, error) < 0)
        return error_wrap(error, "user '%s'", user_of(config));
    free(config->token);
    free(config->client_cert_pem);
    free(config->client_key_pem);
    config->token = credential.token;
    config->client_cert_pem = credential.client_cert_pem;
    config->client_key_pem = credential.client_key_pem;
    *ret_expires_ms = credential.expires_ms;
    return 0;
}

static int64_t plugin_pause_ms(const struct kube_client *client)
{
    int64_t refresh_ms = client->options.token_refresh_ms,
            least_ms = refresh_ms < PLUGIN_PAUSE_MS ? refresh_ms : PLUGIN_PAUSE_MS;
    return client->plugin_pause_ms > least_ms ? client->plugin_pause_ms : least_ms;
}

/* If the plugin fails, the old credentials stay in use; the error of a 401 then says why the plugin failed. */
static void plugin_renew(struct kube_client *client)
{
    int64_t rest_ms = plugin_pause_ms(client), longer_ms = 2 * rest_ms;
    if (!client->config.exec || clock_monotonic_ns() - client->plugin_run_ns < rest_ms * NS_PER_MS)
        return;
    struct error failure = ERROR_INIT;
    plugin_load(&client->config, EXEC_PLUGIN_TIMEOUT_MS, event_loop_signals(client->loop), &client->expires_ms,
                &failure);
    client->plugin_failure = failure;
    client->plugin_run_ns = clock_monotonic_ns();
    client->plugin_pause_ms = failure.kind == ERROR_NONE        ? 0
                              : longer_ms < PLUGIN_PAUSE_MAX_MS ? longer_ms
                                                                : PLUGIN_PAUSE_MAX_MS;
    if (failure.kind == ERROR_NONE)
        http_client_set_identity(client->http, client->config.client_cert_pem, client->config.client_key_pem);
}

/* If the file cannot be read, the old token stays in use. */
static void token_renew(struct kube_client *client)
{
    char *token;
    if (client->config.token_file == NULL || kube_token_read(client->config.token_file, &token, NULL) < 0)
        return;
    free(client->config.token);
    client->config.token = token;
}

/* If the file cannot be read, the old CA stays in use. A new CA applies to new connections. */
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

static void files_renew(struct kube_client *client)
{
    client->credentials_read_ns = clock_monotonic_ns();
    token_renew(client);
    authority_renew(client);
}

/* Reads token and CA files again and runs the credential plugin, as far as the config has them. */
static void credentials_renew(struct kube_client *client)
{
    files_renew(client);
    plugin_renew(client);
}

/* Returns the bearer token to send, renewed first if it is due; NULL: none. */
static const char *current_token(struct kube_client *client)
{
    if (clock_monotonic_ns() - client->credentials_read_ns >= client->options.token_refresh_ms * NS_PER_MS)
        files_renew(client);
    if (clock_now_ms() >= client->expires_ms)
        plugin_renew(client);
    return client->config.token;
}

/* ---------------------------------------------------------------- calls */

static void call_send(struct kube_call *call);
static void queue_serve(struct kube_client *client);

/* Allocates a call and links it to the client. The caller fills in the rest, then sends or queues it. */
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

static struct call_queue *queue_of(struct kube_call *call)
{
    return &call->client->queues[call->priority];
}

/* Queues the call; it is sent when its turn comes. */
static void call_enqueue(struct kube_call *call)
{
    call_queue_push(queue_of(call), call->flow, &call->ticket);
    queue_serve(call->client);
}

static void count_in_flight(struct kube_call *call, bool counts)
{
    int change = (int)counts - (int)call->counts;
    call->client->in_flight += (unsigned)change;
    call->client->in_flight_of[call->priority] += (unsigned)change;
    call->counts = counts;
}

/* ---------------------------------------------------------------- end of a call */

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

/* Returns the call's error, allocated on first use. A call that already failed is not sent. */
static struct error *call_failure(struct kube_call *call)
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

/* Ends the call with its failure from the loop's next turn, so that the callback never runs inside the function that
 * starts the call. */
static void call_fail_later(struct kube_call *call)
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
    error_set(call_failure(call), ERROR_CANCELLED, "the request was cancelled");
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
        error_set(&last, ERROR_TIMEOUT, "%s %s: no answer in time", verbs[call->verb].method, call->url);
    last.kind = ERROR_TIMEOUT;
    error_set(call_failure(call), ERROR_CANCELLED, "timed out");
    transfer_drop(call);
    *call->failure = last;
    call_fail(call);
}

/* ---------------------------------------------------------------- answers */

/* Prepared as in a watch: any object that can be stored must be readable, and managedFields may nest too deep. */
static struct json *body_parse(const struct http_response *response)
{
    struct json *body = NULL;
    SCOPED_BUFFER text = BUFFER_INIT(ANSWER_MAX);
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
        call_send(call);
        return;
    }
    call_enqueue(call);
}

bool kube_client_is_refused(const struct kube_client *client)
{
    return client->refused && !client->answered;
}

/* Returns true if a retry was scheduled. */
static bool call_repeat(struct kube_call *call, const struct http_response *response, int64_t retry_after_ms)
{
    const struct kube_client_options *options = &call->client->options;
    bool may_repeat =
        was_not_done(response, retry_after_ms) || (verbs[call->verb].repeatable && is_transient(response));
    bool gives_up = options->fail_refused && kube_client_is_refused(call->client);
    if (call->verb == VERB_STREAM || !may_repeat || gives_up || call->tries >= call->tries_max)
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
    credentials_renew(call->client);
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
        *call_failure(call) = failure;
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
    client->answered = client->answered || !response->error;
    client->refused = client->refused || response->refused;
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
    bool may_repeat = verbs[call->verb].repeatable && call->tries + 1 < call->tries_max;
    int64_t timeout_ms = may_repeat ? left_ms / 2 : left_ms;
    return timeout_ms > 1 ? timeout_ms : 1;
}

static bool gate_lets_through(const struct kube_call *call)
{
    const struct kube_client *client = call->client;
    return !verbs[call->verb].mutates || call->priority == KUBE_URGENT || client->gate == NULL ||
           client->gate(client->gate_context);
}

static void set_deadline(struct kube_call *call)
{
    if (call->timeout_ms <= 0 || call->deadline_ns != INT64_MAX)
        return;
    call->deadline_ns = clock_monotonic_ns() + call->timeout_ms * NS_PER_MS;
    call->deadline = event_timer_start(call->client->loop, call->timeout_ms, on_deadline, call);
}

/* Sends the call now, without queueing. */
static void call_send(struct kube_call *call)
{
    struct kube_client *client = call->client;
    if (!gate_lets_through(call)) {
        error_set(call_failure(call), ERROR_CANCELLED, "writes are stopped: the lease is not held");
        call_fail_later(call);
        return;
    }
    set_deadline(call);
    struct http_request request = {
        .method = verbs[call->verb].method,
        .url = call->url,
        .headers = client->headers[call->metadata_only],
        .body = call->body,
        .body_length = call->body_length,
        .content_type = verbs[call->verb].content_type,
        .bearer_token = current_token(client),
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
        call_send(queue_next(client));
}

/* ---------------------------------------------------------------- life cycle */

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
    if ((!options.exec_plugins && plugin_reject(&own, error) < 0) ||
        plugin_load(&own, 0, event_loop_signals(loop), &expires_ms, error) < 0)
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
        call_fail_later(call);
    else if (call->priority == KUBE_URGENT)
        call_send(call);
    else
        call_enqueue(call);
}

static struct kube_call *call_path(struct kube_client *client, enum verb verb, const struct resource_path *path,
                                   const struct json *body, const char *const queries[][2],
                                   const struct kube_call_options *options)
{
    struct kube_call *call = call_new(client, verb, path->resource.plural, options->answered, options->context);
    SCOPED_BUFFER url = BUFFER_INIT(16 * 1024);
    buffer_append_string(&url, client->config.server, NULL);
    struct error failure = ERROR_INIT;
    int result = resource_path_append(&url, path, &failure);
    for (; queries && (*queries)[0] && result == 0; queries++)
        result = resource_path_append_query(&url, (*queries)[0], (*queries)[1], &failure);
    call->url = buffer_take(&url);
    SCOPED_BUFFER text = BUFFER_INIT(ANSWER_MAX);
    if (body && result == 0 && json_print(body, &text, &failure) == 0) {
        call->body_length = text.length;
        client->held_bytes += text.length;
        call->body = buffer_take(&text);
    }
    if (failure.kind != ERROR_NONE)
        *call_failure(call) = failure;
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
    struct kube_call *call =
        call_new(client, VERB_STREAM, options->resource ? options->resource : "", options->answered, options->context);
    call->url = memory_format("%s%s", client->config.server, options->path_and_query);
    call->counted_verb = options->verb ? options->verb : verbs[VERB_STREAM].name;
    call->on_data = options->on_data;
    call->idle_timeout_ms = options->idle_timeout_ms;
    call->timeout_ms = options->timeout_ms;
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
    while (call && (call->priority == KUBE_URGENT || !verbs[call->verb].mutates))
        call = call->next;
    return call;
}

void kube_client_abort_writes(struct kube_client *client)
{
    /* Start from the front each time: a callback may end or start other calls. */
    for (struct kube_call *call; (call = find_write(client)) != NULL;)
        kube_call_cancel(call);
}
