/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/push_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/base64.h"
#include "common/certificate.h"
#include "common/clock.h"
#include "common/contract/labels.h"
#include "common/http_server.h"
#include "common/log.h"
#include "common/memory.h"
#include "common/scope.h"
#include "operator/controller/execute/push_report.h"

#define KUBE_ENDPOINT_SLICES ((struct kube_resource){"discovery.k8s.io", "v1", "endpointslices"})
#define AUTHORITY_CERTIFICATE "ca.crt"
#define AUTHORITY_KEY "ca.key"
#define TOKEN_KEY "token.key"

#define DAY_S ((int64_t)24 * 3600)
#define AUTHORITY_S (3650 * DAY_S)       /* how long the authority's certificate is valid */
#define AUTHORITY_RENEW_S (1825 * DAY_S) /* it is renewed when less is left: no pod runs that long */
#define SERVER_S (90 * DAY_S)            /* how long the operator's own is valid */
#define SKEW_S DAY_S                     /* how far behind a node's clock may be */
#define RETRIES_MAX 5                    /* of a request that may succeed soon, before the operator acts without */
#define LATER 30                         /* times retry_ms: when to look again after that */
#define SLICE_MS 60000                   /* the EndpointSlice is written again, in case somebody has changed it */

/* The port is open to all pods. */
#define CONNECTIONS_MAX 128
#define IDLE_SECONDS 10
#define BODY_MAX (4 * PUSH_REPORT_MAX) /* larger ones get 413 from the HTTP server, before they are sent */
#define ANSWER_MAX 4096

struct push_server {
    struct kube_client *client;
    struct push_server_options options;
    struct controller *controller; /* NULL: none yet */
    struct push_endpoint endpoint;
    char *url, *refusal;
    struct certificate authority;
    struct http_server *http;
    uint16_t port;
    struct kube_call *call, *slice_call;
    struct event_timer *timer, *slice_timer;
    unsigned failures; /* in a row, of requests for the Secret before it was read */
    bool told;         /* `ready` was called */
    bool stopped;
};

static const char *object_name(const struct push_server *server)
{
    return server->options.service ? server->options.service : PUSH_SECRET_NAME;
}

static void look(void *context);

static void look_after(struct push_server *server, int64_t delay_ms)
{
    event_timer_cancel(server->timer);
    server->timer = event_timer_start(kube_client_loop(server->client), delay_ms, look, server);
}

static void tell_ready(struct push_server *server)
{
    if (server->told)
        return;
    server->told = true;
    server->options.ready(server->options.context);
}

static void note_reachable(struct push_server *server, bool is_reachable)
{
    int64_t *since_ms = &server->endpoint.reachable_since_ms;
    if (!is_reachable)
        *since_ms = FIELD_UNSET;
    else if (*since_ms == FIELD_UNSET)
        *since_ms = clock_monotonic_ms();
}

static bool goes_on(const struct push_server *server, const struct kube_answer *answer)
{
    return !server->stopped && (!answer->error || answer->error->kind != ERROR_CANCELLED);
}

/* ---------------------------------------------------------------- requests */

static void respond(struct http_exchange *exchange, int status, const char *words)
{
    SCOPED_JSON *answer = json_new_object();
    SCOPED_BUFFER text = BUFFER_INIT(ANSWER_MAX);
    json_set_string(answer, "message", words);
    if (json_print(answer, &text, NULL) < 0)
        buffer_clear(&text);
    http_exchange_respond(exchange, status, "application/json", buffer_text(&text), text.length);
}

static const char *token_of(const struct http_exchange *exchange)
{
    static const char scheme[] = "Bearer ";
    const char *given = http_exchange_header(exchange, "Authorization");
    if (!given || strncasecmp(given, scheme, sizeof scheme - 1) != 0)
        return NULL;
    return given + sizeof scheme - 1;
}

static void take_report(struct push_server *server, struct http_exchange *exchange, const struct push_path *path)
{
    struct push_answer answer = {.status = 503, .retry_after_s = 1};
    size_t length;
    const char *body = http_exchange_body(exchange, &length);
    error_set(&answer.words, ERROR_UNAVAILABLE, "the operator is starting; try again");
    if (server->controller)
        controller_take_report(server->controller, path, body, length, &answer);
    if (answer.retry_after_s > 0) {
        SCOPED_FREE char *seconds = memory_format("%lld", (long long)answer.retry_after_s);
        http_exchange_set_header(exchange, "Retry-After", seconds);
    }
    respond(exchange, answer.status, answer.words.message);
}

/* Closes the connection after the answer, because the sender has not shown a token of its job. */
static void refuse_stranger(struct http_exchange *exchange, int status, const char *words)
{
    http_exchange_set_header(exchange, "Connection", "close");
    respond(exchange, status, words);
}

static void handle(void *context, struct http_exchange *exchange)
{
    struct push_server *server = context;
    const char *token = token_of(exchange);
    struct push_path path;
    if (!push_path_parse(http_exchange_path(exchange), &path)) {
        refuse_stranger(exchange, 404, "reports go to the URL in KUBEFLOW_TRAINER_SERVER_URL");
    } else if (!token) {
        http_exchange_set_header(exchange, "WWW-Authenticate", "Bearer");
        refuse_stranger(
            exchange, 401,
            "send the header Authorization: Bearer, with the text of the file KUBEFLOW_TRAINER_SERVER_TOKEN");
    } else if (!push_token_matches(&server->endpoint, &path, token)) {
        refuse_stranger(exchange, 403,
                        "the token is not this job's; read it from the file KUBEFLOW_TRAINER_SERVER_TOKEN");
    } else if (strcmp(http_exchange_method(exchange), "POST") != 0) {
        http_exchange_set_header(exchange, "Allow", "POST");
        respond(exchange, 405, "send reports with POST");
    } else {
        take_report(server, exchange, &path);
    }
}

/* ---------------------------------------------------------------- the endpoint slice */

static void write_slice(void *context);

static void slice_written(void *context, const struct kube_answer *answer)
{
    struct push_server *server = context;
    server->slice_call = NULL;
    if (!goes_on(server, answer))
        return;
    if (answer->error)
        log_warning("scripts cannot send progress to the operator: writing the EndpointSlice failed", "why",
                    answer->error->message, NULL);
    note_reachable(server, !answer->error);
    server->slice_timer = event_timer_start(kube_client_loop(server->client),
                                            answer->error ? server->options.retry_ms : SLICE_MS, write_slice, server);
}

static struct json *slice_build(const struct push_server *server)
{
    const struct push_server_options *options = &server->options;
    struct json *slice = json_new_object();
    json_set_string(slice, "apiVersion", "discovery.k8s.io/v1");
    json_set_string(slice, "kind", "EndpointSlice");
    struct json *metadata = json_set_object(slice, "metadata");
    json_set_string(metadata, "name", options->service);
    json_set_string(metadata, "namespace", options->name_space);
    struct json *labels = json_set_object(metadata, "labels");
    json_set_string(labels, "kubernetes.io/service-name", options->service);
    json_set_string(labels, "endpointslice.kubernetes.io/managed-by", OPERATOR_NAME);
    json_set_string(slice, "addressType", strchr(options->pod_ip, ':') ? "IPv6" : "IPv4");
    struct json *endpoint = json_append(json_set_array(slice, "endpoints"), json_new_object());
    json_append_string(json_set_array(endpoint, "addresses"), options->pod_ip);
    json_set_boolean(json_set_object(endpoint, "conditions"), "ready", true);
    struct json *port = json_append(json_set_array(slice, "ports"), json_new_object());
    json_set_string(port, "name", "https");
    json_set_integer(port, "port", server->port);
    json_set_string(port, "protocol", "TCP");
    return slice;
}

static void write_slice(void *context)
{
    struct push_server *server = context;
    const struct push_server_options *options = &server->options;
    SCOPED_JSON *slice = slice_build(server);
    struct resource_path path = {KUBE_ENDPOINT_SLICES, options->name_space, options->service, NULL};
    struct kube_call_options call = {.priority = KUBE_HIGH, .answered = slice_written, .context = server};
    server->slice_timer = NULL;
    server->slice_call = kube_client_apply(server->client, &path, slice, OPERATOR_NAME, &call);
}

/* ---------------------------------------------------------------- serving */

static char *authority_of_url(const struct push_server *server)
{
    const struct push_server_options *options = &server->options;
    if (options->service)
        return memory_format("%s.%s.svc", options->service, options->name_space);
    bool v6 = strchr(options->address, ':') != NULL;
    return memory_format("%s%s%s", v6 ? "[" : "", options->address, v6 ? "]" : "");
}

static int make_certificate(const struct push_server *server, struct certificate *ret_made, struct error *error)
{
    const struct push_server_options *options = &server->options;
    int64_t now_s = clock_now_ms() / 1000;
    SCOPED_FREE char *host = authority_of_url(server);
    SCOPED_FREE char *names =
        options->service ? memory_format("DNS:%s", host) : memory_format("IP:%s", options->address);
    const struct certificate_request request = {.common_name = OPERATOR_NAME,
                                                .names = names,
                                                .from_s = now_s - SKEW_S,
                                                .until_s = now_s + SERVER_S,
                                                .extended_use = "serverAuth"};
    return certificate_make(&request, &server->authority, ret_made, error);
}

static int listen_again(struct push_server *server, const struct certificate *made, struct error *error)
{
    const struct push_server_options *options = &server->options;
    struct http_server_options http = {.address = options->address,
                                       .port = server->port ? server->port : options->port,
                                       .tls_cert_pem = made->certificate_pem,
                                       .tls_key_pem = made->key_pem,
                                       .max_body = BODY_MAX,
                                       .max_connections = CONNECTIONS_MAX,
                                       .idle_seconds = IDLE_SECONDS,
                                       .handler = handle,
                                       .context = server};
    http_server_free(server->http);
    server->http = NULL;
    if (http_server_start_on_loop(&http, kube_client_loop(server->client), &server->http, error) < 0)
        return error_wrap(error, "--progress-address");
    server->port = http_server_port(server->http);
    return 0;
}

static void note_serving(struct push_server *server)
{
    SCOPED_FREE char *host = authority_of_url(server);
    free(server->url);
    server->url = memory_format("https://%s:%u", host, server->port);
    server->endpoint.url = server->url;
    server->endpoint.refusal = NULL;
    log_info("listening for progress that scripts send", "url", server->url, NULL);
    if (!server->options.service)
        note_reachable(server, true);
    else if (!server->slice_call && !server->slice_timer)
        write_slice(server);
}

/* Reports are not taken until somebody has mended this: the operator acts without, and looks again later. */
static void refuse(struct push_server *server, const char *why)
{
    if (!server->refusal || strcmp(server->refusal, why) != 0)
        log_error("scripts cannot send progress to the operator", "why", why, NULL);
    free(server->refusal);
    server->refusal = memory_copy_string(why);
    server->endpoint.refusal = server->refusal;
    look_after(server, LATER * server->options.retry_ms);
    tell_ready(server);
}

/* With a new certificate of its own, signed by the authority in memory. */
static void begin_serving(struct push_server *server)
{
    struct error error = ERROR_INIT;
    SCOPED(certificate_release) struct certificate made = {0};
    bool is_made = make_certificate(server, &made, &error) == 0;
    if (!is_made && !server->endpoint.url) {
        refuse(server, error.message);
        return;
    }
    if (!is_made) {
        log_warning("the certificate for scripts could not be renewed", "why", error.message, NULL);
    } else if (listen_again(server, &made, &error) < 0) {
        server->options.failed(server->options.context, &error);
        return;
    } else {
        note_serving(server);
    }
    look_after(server, server->options.refresh_ms);
    tell_ready(server);
}

/* An operator that serves goes on with what it has read before. */
static void fail(struct push_server *server, const char *why)
{
    if (!server->endpoint.url) {
        refuse(server, why);
        return;
    }
    log_warning("the keys of progress.push could not be read again", "why", why, NULL);
    begin_serving(server);
}

/* ---------------------------------------------------------------- the Secret */

static int authority_make(const char *key_pem, struct certificate *ret_made, struct error *error)
{
    int64_t now_s = clock_now_ms() / 1000;
    const struct certificate_request request = {.common_name = "coxswain progress",
                                                .is_authority = true,
                                                .from_s = now_s - SKEW_S,
                                                .until_s = now_s + AUTHORITY_S,
                                                .key_pem = key_pem};
    return certificate_make(&request, NULL, ret_made, error);
}

static void set_data(struct json *secret, const char *name, const void *bytes, size_t length)
{
    SCOPED_FREE char *text = base64_encode(bytes, length);
    json_set_string(json_set_object(secret, "data"), name, text);
}

static void created(void *context, const struct kube_answer *answer);

static struct kube_call_options call_options(struct push_server *server, kube_answered *done)
{
    return (struct kube_call_options){.priority = KUBE_HIGH, .answered = done, .context = server};
}

static void create_secret(struct push_server *server)
{
    struct error error = ERROR_INIT;
    SCOPED(certificate_release) struct certificate made = {0};
    unsigned char key[HMAC_BYTES];
    if (authority_make(NULL, &made, &error) < 0 || getrandom(key, sizeof key, 0) != (ssize_t)sizeof key) {
        refuse(server, "no keys can be made on this machine");
        return;
    }
    SCOPED_JSON *secret = json_new_object();
    json_set_string(secret, "apiVersion", "v1");
    json_set_string(secret, "kind", "Secret");
    json_set_string(json_set_object(secret, "metadata"), "name", object_name(server));
    json_set_string(json_set_object(secret, "metadata"), "namespace", server->options.name_space);
    json_set_string(secret, "type", "Opaque");
    set_data(secret, AUTHORITY_CERTIFICATE, made.certificate_pem, strlen(made.certificate_pem));
    set_data(secret, AUTHORITY_KEY, made.key_pem, strlen(made.key_pem));
    set_data(secret, TOKEN_KEY, key, sizeof key);
    struct resource_path path = {KUBE_SECRETS, server->options.name_space, NULL, NULL};
    struct kube_call_options options = call_options(server, created);
    server->call = kube_client_create(server->client, &path, secret, &options);
}

static int read_data(const struct json *secret, const char *name, char **ret_bytes, size_t *ret_length)
{
    return base64_decode(json_string(json_member(json_member(secret, "data"), name), ""), ret_bytes, ret_length, NULL);
}

/* The pods get the certificate of the authority that serves. */
static void set_authority(struct push_server *server, struct certificate *authority)
{
    certificate_release(&server->authority);
    server->authority = *authority;
    *authority = (struct certificate){0};
    server->endpoint.authority_pem = server->authority.certificate_pem;
}

static int read_secret(struct push_server *server, const struct json *secret)
{
    SCOPED(certificate_release) struct certificate read = {0};
    SCOPED_FREE char *key = NULL;
    size_t length = 0, key_length = 0;
    int64_t until_s;
    if (read_data(secret, AUTHORITY_CERTIFICATE, &read.certificate_pem, &length) < 0 ||
        read_data(secret, AUTHORITY_KEY, &read.key_pem, &length) < 0 ||
        read_data(secret, TOKEN_KEY, &key, &key_length) < 0 || key_length != HMAC_BYTES ||
        certificate_end(read.certificate_pem, &until_s, NULL) < 0 || !certificate_has_key(&read))
        return -1;
    set_authority(server, &read);
    memcpy(server->endpoint.key, key, HMAC_BYTES);
    memset(key, 0, key_length);
    return 0;
}

/* Notes that the request for the Secret has ended. Returns false if nothing is to follow: the server was stopped meanwhile. */
static bool take_answer(struct push_server *server, const struct kube_answer *answer)
{
    server->call = NULL;
    return goes_on(server, answer);
}

/* Serves with the renewed certificate even if it could not be stored: its key is the same. */
static void renewed(void *context, const struct kube_answer *answer)
{
    struct push_server *server = context;
    if (!take_answer(server, answer))
        return;
    if (answer->error)
        log_warning("the renewed CA certificate could not be stored in its Secret; it is used all the same", "why",
                    answer->error->message, NULL);
    begin_serving(server);
}

static void renew_authority(struct push_server *server, const struct json *secret)
{
    struct certificate made;
    if (authority_make(server->authority.key_pem, &made, NULL) < 0) {
        begin_serving(server);
        return;
    }
    set_authority(server, &made);
    SCOPED_JSON *next = json_copy(secret);
    json_remove(json_member(next, "metadata"), "managedFields");
    const char *pem = server->authority.certificate_pem;
    set_data(next, AUTHORITY_CERTIFICATE, pem, strlen(pem));
    struct resource_path path = {KUBE_SECRETS, server->options.name_space, object_name(server), NULL};
    struct kube_call_options options = call_options(server, renewed);
    server->call = kube_client_replace(server->client, &path, next, &options);
}

static void take_secret(struct push_server *server, const struct json *secret)
{
    int64_t until_s = 0;
    if (read_secret(server, secret) < 0) {
        SCOPED_FREE char *why = memory_format("Secret %s/%s is corrupt; delete it, then recreate jobs whose scripts "
                                              "push progress (their tokens become invalid)",
                                              server->options.name_space, object_name(server));
        fail(server, why);
        return;
    }
    server->failures = 0;
    certificate_end(server->authority.certificate_pem, &until_s, NULL);
    if (until_s - clock_now_ms() / 1000 < AUTHORITY_RENEW_S)
        renew_authority(server, secret);
    else
        begin_serving(server);
}

/* Returns whether the same request will be answered so until somebody mends something. */
static bool is_final(enum error_kind kind)
{
    return kind == ERROR_FORBIDDEN || kind == ERROR_INVALID || kind == ERROR_NOT_FOUND || kind == ERROR_NO_SPACE ||
           kind == ERROR_TOO_LARGE;
}

static void not_answered(struct push_server *server, const struct error *error, const char *doing)
{
    if (!server->told && !is_final(error->kind) && ++server->failures < RETRIES_MAX) {
        log_warning("no access to the Secret of progress.push, trying again", "doing", doing, "why", error->message,
                    NULL);
        look_after(server, server->options.retry_ms);
        return;
    }
    SCOPED_FREE char *why = memory_format("the operator cannot %s its Secret %s/%s, for which the Role of "
                                          "deploy/components/progress gives the rights: %s",
                                          doing, server->options.name_space, object_name(server), error->message);
    fail(server, why);
}

static void created(void *context, const struct kube_answer *answer)
{
    struct push_server *server = context;
    enum error_kind kind = answer->error ? answer->error->kind : ERROR_NONE;
    if (!take_answer(server, answer))
        return;
    if (kind == ERROR_NONE)
        take_secret(server, answer->object);
    else if (kind == ERROR_ALREADY_EXISTS && server->failures++ == 0) /* another operator was faster */
        look_after(server, 0);
    else
        not_answered(server, answer->error, "create");
}

static void answered(void *context, const struct kube_answer *answer)
{
    struct push_server *server = context;
    enum error_kind kind = answer->error ? answer->error->kind : ERROR_NONE;
    if (!take_answer(server, answer))
        return;
    if (kind == ERROR_NONE)
        take_secret(server, answer->object);
    else if (kind == ERROR_NOT_FOUND && !server->endpoint.url)
        create_secret(server);
    else
        not_answered(server, answer->error, "read");
}

static void look(void *context)
{
    struct push_server *server = context;
    struct resource_path path = {KUBE_SECRETS, server->options.name_space, object_name(server), NULL};
    struct kube_call_options options = call_options(server, answered);
    server->timer = NULL;
    server->call = kube_client_get(server->client, &path, &options);
}

/* ---------------------------------------------------------------- life cycle */

struct push_server *push_server_start(struct kube_client *client, const struct push_server_options *options)
{
    struct push_server *server = memory_allocate(1, sizeof *server);
    server->client = client;
    server->options = *options;
    if (options->refresh_ms == 0)
        server->options.refresh_ms = PUSH_REFRESH_MS;
    if (options->retry_ms == 0)
        server->options.retry_ms = PUSH_RETRY_MS;
    server->endpoint.reachable_since_ms = FIELD_UNSET;
    look(server);
    return server;
}

void push_server_set_controller(struct push_server *server, struct controller *controller)
{
    server->controller = controller;
}

const struct push_endpoint *push_server_endpoint(const struct push_server *server)
{
    return &server->endpoint;
}

void push_server_stop(struct push_server *server)
{
    server->stopped = true;
    event_timer_cancel(server->timer);
    event_timer_cancel(server->slice_timer);
    server->timer = server->slice_timer = NULL;
    http_server_free(server->http);
    server->http = NULL;
}

void push_server_free(struct push_server *server)
{
    certificate_release(&server->authority);
    memset(server->endpoint.key, 0, sizeof server->endpoint.key);
    free(server->url);
    free(server->refusal);
    free(server);
}
