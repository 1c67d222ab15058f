/* SPDX-License-Identifier: Apache-2.0
 *
 * faultproxy: stands in front of any API server and spoils what passes, by rules.
 *
 *   faultproxy --kubeconfig REAL --rules FILE [--seed N] [--victim FILE] --out KUBECONFIG
 *
 * It listens on loopback over plain HTTP and writes a kubeconfig that leads to it; its appearance says that it serves.
 * Rules: rules.h. The same seed gives the same choices for the same sequence of requests.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/http_client.h"
#include "common/http_server.h"
#include "common/memory.h"
#include "operator/kube/credentials.h"
#include "operator/kube/resource_path.h"
#include "tests/faultproxy/rules.h"

#define PENDING_MAX (64 * 1024 * 1024)
#define EXIT_USAGE 2

struct proxy {
    struct event_loop *loop;
    struct kube_config config;
    struct http_client *client;
    struct http_server *server;
    struct rules rules;
    const char *victim; /* a file with the process to kill; NULL: none */
};

/* One request on its way. */
struct passage {
    struct proxy *proxy;
    struct http_exchange *exchange; /* NULL once answered, or gone */
    struct http_stream *stream;     /* a watch; NULL until its first bytes, or gone */
    struct http_transfer *transfer;
    struct event_timer *delay;
    const struct rule *rule;
    char *method, *url, *authorization, *accept, *content_type;
    struct buffer body, line;
    int64_t passed; /* bytes of the answer */
    bool watch;
};

static void passage_free(struct passage *passage)
{
    free(passage->method);
    free(passage->url);
    free(passage->authorization);
    free(passage->accept);
    free(passage->content_type);
    buffer_release(&passage->body);
    buffer_release(&passage->line);
    free(passage);
}

/* The client has left, or the stream was closed. */
static void passage_closed(void *context)
{
    struct passage *passage = context;
    passage->exchange = NULL;
    passage->stream = NULL;
    if (passage->delay)
        event_timer_cancel(passage->delay);
    passage->delay = NULL;
    if (passage->transfer)
        http_transfer_cancel(passage->transfer);
    else
        passage_free(passage);
}

/* ---------------------------------------------------------------- the answer */

static bool is_fault(const struct passage *passage, enum fault fault)
{
    return passage->rule && passage->rule->fault == fault;
}

/* How much of `length` bytes may still pass. */
static size_t allowed(const struct passage *passage, size_t length)
{
    if (!is_fault(passage, FAULT_CUT))
        return length;
    int64_t left = passage->rule->after_bytes - passage->passed;
    return left <= 0 ? 0 : (int64_t)length < left ? length : (size_t)left;
}

static void write_line_twice(struct passage *passage, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length && passage->stream; i++) {
        buffer_append_byte(&passage->line, bytes[i], NULL);
        if (bytes[i] != '\n')
            continue;
        for (int time = 0; time < 2 && passage->stream; time++)
            http_stream_write(passage->stream, passage->line.data, passage->line.length);
        buffer_clear(&passage->line);
    }
}

static int answer_data(void *context, const char *bytes, size_t length, struct error *error)
{
    struct passage *passage = context;
    if (!passage->stream && !passage->exchange)
        return error_set(error, ERROR_CANCELLED, "the client has left");
    if (!passage->stream) {
        passage->stream =
            http_exchange_stream(passage->exchange, 200, "application/json", PENDING_MAX, passage_closed, passage);
        passage->exchange = NULL;
    }
    size_t part = allowed(passage, length);
    passage->passed += (int64_t)part;
    if (is_fault(passage, FAULT_DUPLICATE))
        write_line_twice(passage, bytes, part);
    else if (part > 0)
        http_stream_write(passage->stream, bytes, part);
    if (part == length)
        return 0;
    fprintf(stderr, "cut %s %s\n", passage->method, passage->url);
    return error_set(error, ERROR_CANCELLED, "cut");
}

/* Kills the process that sent the request, so it gets no answer. The file is removed to show that it was done. */
static void kill_victim(const struct passage *passage)
{
    SCOPED_BUFFER text = BUFFER_INIT(64);
    const char *path = passage->proxy->victim;
    long process = path && buffer_read_file(&text, path, NULL) == 0 ? strtol(buffer_text(&text), NULL, 10) : 0;
    if (process > 1)
        kill((pid_t)process, SIGKILL);
    fprintf(stderr, "killed %ld %s %s %s\n", process, passage->rule->afterwards ? "after" : "before", passage->method,
            passage->url);
    if (path)
        unlink(path);
}

static void answer_done(void *context, const struct http_response *response)
{
    struct passage *passage = context;
    passage->transfer = NULL;
    if (is_fault(passage, FAULT_KILL)) {
        kill_victim(passage);
        if (!passage->exchange)
            passage_free(passage);
    } else if (passage->stream) {
        http_stream_close(passage->stream);
    } else if (passage->exchange) {
        struct http_exchange *exchange = passage->exchange;
        int status = response->error ? 502 : response->status;
        http_exchange_respond(exchange, status, response->content_type ? response->content_type : "text/plain",
                              response->body ? response->body : "", allowed(passage, response->body_length));
        passage_free(passage);
    } else {
        passage_free(passage);
    }
}

/* ---------------------------------------------------------------- the request */

static void forward(void *context)
{
    struct passage *passage = context;
    passage->delay = NULL;
    const char *headers[4] = {NULL};
    size_t count = 0;
    if (passage->authorization)
        headers[count++] = passage->authorization;
    if (passage->accept)
        headers[count++] = passage->accept;
    struct http_request request = {
        .method = passage->method,
        .url = passage->url,
        .headers = headers,
        .body = passage->body.length ? passage->body.data : NULL,
        .body_length = passage->body.length,
        .content_type = passage->content_type,
        .bearer_token = passage->authorization ? NULL : passage->proxy->config.token,
        .on_data = passage->watch ? answer_data : NULL,
        .done = answer_done,
        .context = passage,
    };
    passage->transfer = http_client_start(passage->proxy->client, &request);
}

/* The parameters of the Kubernetes API; the server hands them out by name only. */
static void append_query(struct buffer *url, const struct http_exchange *exchange)
{
    static const char *const names[] = {"watch",
                                        "resourceVersion",
                                        "resourceVersionMatch",
                                        "sendInitialEvents",
                                        "allowWatchBookmarks",
                                        "limit",
                                        "continue",
                                        "timeoutSeconds",
                                        "labelSelector",
                                        "fieldSelector",
                                        "dryRun",
                                        "fieldManager",
                                        "fieldValidation",
                                        "force",
                                        "propagationPolicy",
                                        "follow",
                                        "container",
                                        "tailLines",
                                        "limitBytes",
                                        "sinceSeconds",
                                        "sinceTime",
                                        "timestamps",
                                        "previous",
                                        "pretty",
                                        "timeout",
                                        "gracePeriodSeconds"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        resource_path_append_query(url, names[i], http_exchange_query(exchange, names[i]), NULL);
}

static char *header_copy(const struct http_exchange *exchange, const char *name)
{
    const char *value = http_exchange_header(exchange, name);
    return value ? memory_format("%s: %s", name, value) : NULL;
}

static struct passage *passage_new(struct proxy *proxy, struct http_exchange *exchange)
{
    struct passage *passage = memory_allocate(1, sizeof *passage);
    SCOPED_BUFFER url = BUFFER_INIT(PENDING_MAX);
    size_t length;
    buffer_format(&url, "%s%s", proxy->config.server, http_exchange_path(exchange));
    append_query(&url, exchange);
    const char *watch = http_exchange_query(exchange, "watch"), *follow = http_exchange_query(exchange, "follow");
    *passage = (struct passage){
        .proxy = proxy,
        .exchange = exchange,
        .method = memory_copy_string(http_exchange_method(exchange)),
        .url = buffer_take(&url),
        .authorization = header_copy(exchange, "Authorization"),
        .accept = header_copy(exchange, "Accept"),
        .content_type = memory_copy_string(http_exchange_header(exchange, "Content-Type")),
        .watch = (watch && strcmp(watch, "false") != 0 && strcmp(watch, "0") != 0) || follow,
    };
    buffer_init(&passage->body, PENDING_MAX);
    buffer_init(&passage->line, PENDING_MAX);
    const char *body = http_exchange_body(exchange, &length);
    buffer_append(&passage->body, body, length, NULL);
    return passage;
}

static void respond(struct passage *passage, int status, const char *text)
{
    http_exchange_respond(passage->exchange, status, "application/json", text, strlen(text));
    passage_free(passage);
}

static void refuse(struct passage *passage)
{
    const struct rule *rule = passage->rule;
    char text[256], seconds[32];
    if (rule->retry_after >= 0) {
        snprintf(seconds, sizeof seconds, "%lld", (long long)rule->retry_after);
        http_exchange_set_header(passage->exchange, "Retry-After", seconds);
    }
    snprintf(text, sizeof text,
             "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"made by faultproxy\","
             "\"reason\":\"%s\",\"code\":%lld}",
             rule->status == 410   ? "Expired"
             : rule->status == 429 ? "TooManyRequests"
                                   : "InternalError",
             (long long)rule->status);
    respond(passage, (int)rule->status, text);
}

static void handle(void *context, struct http_exchange *exchange)
{
    struct proxy *proxy = context;
    struct passage *passage = passage_new(proxy, exchange);
    passage->rule = rules_choose(&proxy->rules, passage->method, http_exchange_path(exchange), passage->watch);
    if (is_fault(passage, FAULT_STATUS)) {
        refuse(passage);
    } else if (is_fault(passage, FAULT_MALFORMED)) {
        respond(passage, 200, "{\"kind\":\"PodList\",\"items\":[{\"metadata\":");
    } else if (is_fault(passage, FAULT_EXPIRE)) {
        respond(passage, 200,
                "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\","
                "\"reason\":\"Expired\",\"message\":\"too old resource version\",\"code\":410}}\n");
    } else {
        http_exchange_defer(exchange, passage_closed, passage);
        if (is_fault(passage, FAULT_DELAY))
            passage->delay = event_timer_start(proxy->loop, passage->rule->delay_ms, forward, passage);
        else if (is_fault(passage, FAULT_KILL) && !passage->rule->afterwards)
            kill_victim(passage);
        else if (!is_fault(passage, FAULT_HANG))
            forward(passage);
    }
}

/* ---------------------------------------------------------------- the program */

static int kubeconfig_write(const struct proxy *proxy, const char *path, struct error *error)
{
    SCOPED_FREE char *partial = memory_format("%s.part", path);
    FILE *file = fopen(partial, "we");
    if (!file)
        return error_set_errno(error, "write %s", partial);
    fprintf(file,
            "apiVersion: v1\nkind: Config\ncurrent-context: faultproxy\n"
            "clusters: [{name: faultproxy, cluster: {server: \"http://127.0.0.1:%u\"}}]\n"
            "users: [{name: faultproxy, user: {token: \"%s\"}}]\n"
            "contexts: [{name: faultproxy, context: {cluster: faultproxy, user: faultproxy}}]\n",
            http_server_port(proxy->server), proxy->config.token ? proxy->config.token : "");
    if (fclose(file) != 0 || rename(partial, path) < 0)
        return error_set_errno(error, "write %s", path);
    return 0;
}

static void stop(void *context, int signal_number)
{
    (void)signal_number;
    event_loop_stop(context);
}

static int proxy_start(struct proxy *proxy, const char *out, struct error *error)
{
    struct http_client_options client = {.ca_pem = proxy->config.ca_pem,
                                         .client_cert_pem = proxy->config.client_cert_pem,
                                         .client_key_pem = proxy->config.client_key_pem,
                                         .max_connections = 256};
    struct http_server_options server = {.address = "127.0.0.1", .handler = handle, .context = proxy};
    if (event_loop_new(&proxy->loop, error) < 0 || http_client_new(proxy->loop, &client, &proxy->client, error) < 0 ||
        http_server_start_on_loop(&server, proxy->loop, &proxy->server, error) < 0 ||
        event_loop_on_signal(proxy->loop, SIGTERM, stop, proxy->loop, error) < 0 ||
        event_loop_on_signal(proxy->loop, SIGINT, stop, proxy->loop, error) < 0 ||
        kubeconfig_write(proxy, out, error) < 0)
        return -1;
    return event_loop_run(proxy->loop, error);
}

static void proxy_release(struct proxy *proxy)
{
    if (proxy->server)
        http_server_free(proxy->server);
    if (proxy->client)
        http_client_free(proxy->client);
    if (proxy->loop)
        event_loop_free(proxy->loop);
    rules_release(&proxy->rules);
    kube_config_release(&proxy->config);
}

int main(int count, char **words)
{
    static const struct option known[] = {
        {"kubeconfig", required_argument, NULL, 'k'}, {"rules", required_argument, NULL, 'r'},
        {"seed", required_argument, NULL, 's'},       {"out", required_argument, NULL, 'o'},
        {"victim", required_argument, NULL, 'v'},     {NULL, 0, NULL, 0}};
    const char *kubeconfig = NULL, *rules = NULL, *out = NULL, *victim = NULL;
    uint64_t seed = 1;
    for (int option; (option = getopt_long(count, words, "", known, NULL)) != -1;) {
        if (option == 's')
            seed = strtoull(optarg, NULL, 10);
        else if (option != '?')
            *(option == 'k' ? &kubeconfig : option == 'r' ? &rules : option == 'v' ? &victim : &out) = optarg;
    }
    if (!kubeconfig || !rules || !out) {
        fputs("usage: faultproxy --kubeconfig REAL --rules FILE [--seed N] [--victim FILE] --out KUBECONFIG\n", stderr);
        return EXIT_USAGE;
    }
    SCOPED(proxy_release) struct proxy proxy = {.victim = victim};
    struct error error = ERROR_INIT;
    if (kube_config_load(kubeconfig, NULL, &proxy.config, &error) < 0 ||
        rules_read(rules, seed, &proxy.rules, &error) < 0 || proxy_start(&proxy, out, &error) < 0) {
        fprintf(stderr, "faultproxy: %s\n", error.message);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
