/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/report/status_server.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/http_server.h"
#include "common/lock.h"
#include "common/memory.h"

#define ADDRESS_ANY "0.0.0.0"
/* Anybody can connect to the port; if probes find no free connection, the worker counts as not
 * ready. */
#define CONNECTIONS_MAX 128
#define IDLE_SECONDS 10
#define TEXT_PLAIN "text/plain; charset=utf-8"
#define TEXT_PROMETHEUS "text/plain; version=0.0.4; charset=utf-8"

struct status_server {
    struct http_server *http;
    void (*complete)(struct status_document *document);
    bool (*is_live)(char *reason, size_t size);
    pthread_mutex_t mutex; /* guards the members below */
    bool published;
    struct status_document document;
};

static void respond_text(struct http_exchange *exchange, int status, const char *type, const char *text)
{
    http_exchange_respond(exchange, status, type, text, strlen(text));
}

static void answer_health(struct http_exchange *exchange, bool published)
{
    respond_text(exchange, published ? 200 : 503, TEXT_PLAIN, published ? "ok\n" : "starting\n");
}

static void answer_life(const struct status_server *server, struct http_exchange *exchange)
{
    char reason[256];
    if (server->is_live == NULL || server->is_live(reason, sizeof reason))
        respond_text(exchange, 200, TEXT_PLAIN, "ok\n");
    else
        respond_text(exchange, 503, TEXT_PLAIN, reason);
}

static void answer_status(struct http_exchange *exchange, const struct status_document *document)
{
    SCOPED_BUFFER text = BUFFER_INIT(STATUS_DOCUMENT_MAX);
    struct error error = ERROR_INIT;
    if (status_document_print(document, &text, &error) < 0)
        respond_text(exchange, 500, TEXT_PLAIN, error.message);
    else
        http_exchange_respond(exchange, 200, "application/json", text.data, text.length);
}

static void put_gauge(struct buffer *out, const char *name, const char *help, double value)
{
    if (value == STATUS_UNKNOWN)
        return;
    buffer_format(out, "# HELP coxswain_worker_%s %s\n# TYPE coxswain_worker_%s gauge\ncoxswain_worker_%s %.10g\n",
                  name, help, name, name, value);
}

/* Only while a member is slow. */
static void put_straggler(struct buffer *out, const struct status_document *document)
{
    if (*document->straggler_role == '\0' || document->straggler_due_ms <= 0)
        return;
    buffer_format(out,
                  "# HELP coxswain_worker_straggler_ratio How many times as long as expected a slow member takes.\n"
                  "# TYPE coxswain_worker_straggler_ratio gauge\n"
                  "coxswain_worker_straggler_ratio{role=\"%s\",index=\"%lld\"} %.10g\n",
                  document->straggler_role, (long long)document->straggler_index,
                  document->straggler_ms / document->straggler_due_ms);
}

static void answer_metrics(struct http_exchange *exchange, const struct status_document *document)
{
    SCOPED_BUFFER text = BUFFER_INIT(STATUS_DOCUMENT_MAX);
    put_gauge(&text, "step", "Applied optimizer steps.", (double)document->step);
    put_gauge(&text, "steps_total", "Steps of the whole run.", (double)document->total_steps);
    put_gauge(&text, "examples_per_second", "Examples trained on each second by the whole crew.",
              document->examples_per_second);
    put_gauge(&text, "seconds_remaining", "Estimated time left.", (double)document->seconds_remaining);
    put_gauge(&text, "last_checkpoint_step", "Step of the newest committed checkpoint.",
              (double)document->last_checkpoint_step);
    put_gauge(&text, "failed_saves", "Saves that failed since the last one that succeeded.",
              (double)document->failed_saves);
    put_gauge(&text, "refused_connections_per_minute",
              "Connections refused per minute, because they did not prove that they belong to the job.",
              (double)document->refused_per_minute);
    put_gauge(&text, "goodput_ratio", "Share of the time that went into steps that were kept.", document->goodput);
    put_straggler(&text, document);
    put_gauge(&text, "incarnation", "Incarnation of this pod.", (double)document->incarnation);
    for (unsigned i = 0; i < document->metric_count; i++)
        buffer_format(&text, "coxswain_worker_metric{name=\"%s\"} %.10g\n", document->metrics[i].name,
                      document->metrics[i].value);
    buffer_format(&text, "coxswain_worker_phase{phase=\"%s\"} 1\n", status_phase_name(document->phase));
    respond_text(exchange, 200, TEXT_PROMETHEUS, buffer_text(&text));
}

static void handle(void *context, struct http_exchange *exchange)
{
    struct status_server *server = context;
    pthread_mutex_lock(&server->mutex);
    bool published = server->published;
    struct status_document document = server->document;
    pthread_mutex_unlock(&server->mutex);
    if (server->complete != NULL)
        server->complete(&document);
    const char *method = http_exchange_method(exchange), *path = http_exchange_path(exchange);
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        respond_text(exchange, 405, TEXT_PLAIN, "only GET is answered here\n");
    else if (strcmp(path, "/healthz") == 0)
        answer_health(exchange, published);
    else if (strcmp(path, "/healthz/live") == 0)
        answer_life(server, exchange);
    else if (strcmp(path, "/status") == 0)
        answer_status(exchange, &document);
    else if (strcmp(path, "/metrics") == 0)
        answer_metrics(exchange, &document);
    else
        respond_text(exchange, 404, TEXT_PLAIN, "there is /healthz, /healthz/live, /status and /metrics\n");
}

int status_server_start(const struct status_server_options *given, struct status_server **ret_server,
                        struct error *error)
{
    struct status_server *server = memory_allocate(1, sizeof *server);
    server->complete = given->complete;
    server->is_live = given->is_live;
    pthread_mutex_init(&server->mutex, NULL);
    status_document_init(&server->document);
    const struct http_server_options options = {
        .address = given->address ? given->address : ADDRESS_ANY,
        .port = given->port,
        .max_connections = CONNECTIONS_MAX,
        .idle_seconds = IDLE_SECONDS,
        .handler = handle,
        .context = server,
    };
    if (http_server_start(&options, &server->http, error) < 0) {
        pthread_mutex_destroy(&server->mutex);
        free(server);
        return error_wrap(error, "status server");
    }
    *ret_server = server;
    return 0;
}

void status_server_free(struct status_server *server)
{
    http_server_free(server->http);
    pthread_mutex_destroy(&server->mutex);
    free(server);
}

void status_server_publish(struct status_server *server, const struct status_document *document)
{
    SCOPED_LOCK(&server->mutex);
    server->document = *document;
    server->published = true;
}
