/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/ui/server.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/labels.h"
#include "common/http_server.h"
#include "common/job/rules.h"
#include "common/job/string_format.h"
#include "common/job/training_sweep.h"
#include "common/memory.h"
#include "operator/cli/access.h"
#include "operator/cli/job_condition.h"
#include "operator/cli/job_control.h"
#include "operator/cli/job_evidence.h"
#include "operator/cli/log_read.h"
#include "operator/cli/sweep_read.h"
#include "operator/cli/ui/assets.h"
#include "operator/cli/ui/curves.h"
#include "operator/cli/ui/documents.h"
#include "operator/cli/ui/gate.h"
#include "operator/cli/ui/list.h"
#include "operator/cli/ui/model_use.h"
#include "operator/cli/ui/restarts.h"
#include "operator/cli/ui/runs.h"
#include "operator/cli/ui/streams.h"

#define BODY_MAX (16 * 1024) /* of a request: a prompt of up to 4,000 characters, of 3 bytes each */
#define CONNECTIONS_MAX 64
#define WAITING_MAX 64
#define ANSWER_MAX (64 * 1024 * 1024)
#define TAIL_DEFAULT 500
#define TAIL_MAX 20000
#define TOKENS_DEFAULT 256
#define TEMPERATURE_DEFAULT 0.8
#define TEMPERATURE_MAX 100.0
#define NAME_MAX_LENGTH 254
#define RUN_MAX_LENGTH 1024

#define JSON_TYPE "application/json"
#define EVENTS_TYPE "text/event-stream"

static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

struct waiting;
/* Answers a request, by blocking requests of the cluster. Appends the answer, JSON, to `out`. Returns ANSWERED_LATER if the
 * exchange needs no answer from the caller. */
typedef int ui_action(struct ui_server *server, const struct waiting *request, struct buffer *out, struct error *error);

#define ANSWERED_LATER 1

/* A request that waits for its answer. Its strings are copies, since the browser may go away meanwhile. */
struct waiting {
    struct http_exchange *exchange; /* NULL: the browser is gone */
    ui_action *action;
    bool sweep, changes, is_post;
    char name_space[NAME_MAX_LENGTH], name[NAME_MAX_LENGTH], run[RUN_MAX_LENGTH], role[16];
    int64_t index, tail, workers, tokens, seed;
    double temperature;
    char *prompt; /* the body; owned */
    uint64_t known;
};

struct ui_server {
    struct cluster *cluster;
    struct http_server *http;
    struct ui_gate gate;
    struct ui_list *list; /* NULL: the page shows runs */
    struct ui_runs *runs; /* NULL: the page shows a cluster */
    const char *state; /* with the volumes of the jobs that the present request asks for; NULL: they are in a cluster */
    struct ui_curves *curves;
    struct ui_restarts *restarts;
    struct model_uses *models;
    struct ui_streams *streams;
    bool kept;
    struct waiting *waiting[WAITING_MAX]; /* POST requests, then GET requests; the oldest first */
    unsigned waiting_count;
};

/* ---------------------------------------------------------------- answers */

static void set_headers(struct http_exchange *exchange)
{
    static const char *const headers[][2] = {{"Content-Security-Policy", policy},
                                             {"X-Content-Type-Options", "nosniff"},
                                             {"Referrer-Policy", "no-referrer"},
                                             {"Cross-Origin-Opener-Policy", "same-origin"},
                                             {"Cross-Origin-Resource-Policy", "same-origin"},
                                             {"Cache-Control", "no-store"}};
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        http_exchange_set_header(exchange, headers[i][0], headers[i][1]);
}

static void respond(struct http_exchange *exchange, int status, const char *type, const void *body, size_t length)
{
    set_headers(exchange);
    http_exchange_respond(exchange, status, type, body, length);
}

static void respond_text(struct http_exchange *exchange, int status, const char *text)
{
    respond(exchange, status, "text/plain; charset=utf-8", text, strlen(text));
}

static void respond_error(struct http_exchange *exchange, int status, const char *sentence)
{
    SCOPED_JSON *document = json_new_object();
    SCOPED_BUFFER text;
    buffer_init(&text, ANSWER_MAX);
    json_set_string(document, "error", sentence);
    json_print(document, &text, NULL);
    respond(exchange, status, JSON_TYPE, buffer_text(&text), text.length);
}

/* The status that the cluster answered, else 502; 401 says that the page is to be opened again, not that the kubeconfig is of no use. */
static void respond_failure(struct http_exchange *exchange, struct error *error)
{
    int status = error->http_status == 401      ? 502
                 : error->http_status >= 400    ? error->http_status
                 : error->kind == ERROR_INVALID ? 422
                                                : 502;
    access_explain(error);
    respond_error(exchange, status, error->message);
}

static void respond_result(struct http_exchange *exchange, int result, const struct buffer *out, struct error *error)
{
    if (result < 0)
        respond_failure(exchange, error);
    else
        respond(exchange, 200, JSON_TYPE, buffer_text(out), out->length);
}

static int print_document(struct json *document, struct buffer *out, struct error *error)
{
    int result = json_print(document, out, error);
    json_free(document);
    return result;
}

/* ---------------------------------------------------------------- what waits for the cluster */

static int job_get(struct ui_server *server, const struct waiting *request, struct buffer *out, struct error *error)
{
    SCOPED(job_evidence_release) struct job_evidence evidence = {.job = NULL};
    struct json *document;
    if (job_evidence_gather(server->cluster, request->name, &evidence, error) < 0)
        return -1;
    struct why_input input = job_evidence_input(&evidence);
    if (ui_job_document(&input, &document, error) < 0)
        return -1;
    json_set_boolean(document, "here", server->state != NULL);
    json_set_boolean(document, "kept", server->cluster->kept);
    json_set_boolean(document, "restarting",
                     ui_restarts_has(server->restarts, request->run, request->name_space, request->name));
    return print_document(document, out, error);
}

static int job_and_pods(struct ui_server *server, const struct waiting *request, struct json **ret_job,
                        struct json **ret_pods, struct error *error)
{
    struct resource_path path = cluster_job_path(server->cluster, request->name);
    if (cluster_get(server->cluster, &path, ret_job, error) < 0)
        return -1;
    return cluster_pods(server->cluster, request->name, ret_pods, error);
}

static int curves_get(struct ui_server *server, const struct waiting *request, struct buffer *out, struct error *error)
{
    SCOPED_JSON *job = NULL;
    SCOPED_JSON *pods = NULL;
    const struct history *history;
    if (job_and_pods(server, request, &job, &pods, error) < 0 ||
        ui_curves_read(server->curves, server->cluster, job, pods, &history, error) < 0)
        return -1;
    return print_document(history_json(history, request->known), out, error);
}

static int use_model(struct ui_server *server, const struct waiting *request, enum model_purpose purpose,
                     struct error *error)
{
    bool is_text = purpose == MODEL_GENERATE;
    SCOPED_JSON *job = NULL;
    struct model_use *use;
    struct resource_path path = cluster_job_path(server->cluster, request->name);
    struct model_question question = {.purpose = purpose,
                                      .prompt = is_text ? request->prompt : NULL,
                                      .tokens = request->tokens < 1 ? TOKENS_DEFAULT : request->tokens,
                                      .seed = request->seed < 0 ? 0 : request->seed,
                                      .temperature = request->temperature};
    if (cluster_get(server->cluster, &path, &job, error) < 0)
        return -1;
    if (!request->exchange)
        return ANSWERED_LATER; /* the browser has gone meanwhile */
    if (model_use_start(server->models, server->state, request->name_space, job, &question, &use, error) < 0)
        return -1;
    set_headers(request->exchange);
    model_use_attach(use, http_exchange_stream(request->exchange, 200, is_text ? EVENTS_TYPE : JSON_TYPE, ANSWER_MAX,
                                               model_use_closed, use));
    return ANSWERED_LATER;
}

static int layers_get(struct ui_server *server, const struct waiting *request, struct buffer *out, struct error *error)
{
    (void)out;
    return use_model(server, request, MODEL_LAYERS, error);
}

static int predict(struct ui_server *server, const struct waiting *request, struct buffer *out, struct error *error)
{
    (void)out;
    return use_model(server, request, MODEL_PREDICT, error);
}

static int generate(struct ui_server *server, const struct waiting *request, struct buffer *out, struct error *error)
{
    (void)out;
    if (*request->prompt == '\0')
        return error_set(error, ERROR_INVALID, "Write a text for the model to continue.");
    return use_model(server, request, MODEL_GENERATE, error);
}

static void leave_out(const char *speaker, const struct json *pod, const struct error *cause)
{
    (void)speaker, (void)pod, (void)cause; /* the page says how many */
}

static int print_log(struct log_texts *texts, bool prefix, struct buffer *out, struct error *error)
{
    struct log_style style = {.prefix = prefix, .width = log_texts_width(texts)};
    SCOPED_BUFFER text;
    buffer_init(&text, ANSWER_MAX / 2);
    while (log_merge_line(&style, texts->logs, texts->count, &text))
        continue;
    for (size_t i = 0; i < text.length; i++)
        if (text.data[i] == '\0') /* would end the string */
            text.data[i] = ' ';
    struct json *document = json_new_object();
    json_set_string(document, "text", buffer_text(&text));
    json_set_integer(document, "unread", texts->unread);
    return print_document(document, out, error);
}

static int log_get(struct ui_server *server, const struct waiting *request, struct buffer *out, struct error *error)
{
    struct command_line line = {.role = *request->role ? request->role : NULL,
                                .index = request->index,
                                .tail = request->tail < 0 ? TAIL_DEFAULT : request->tail,
                                .all_attempts = true};
    SCOPED_JSON *job = NULL;
    SCOPED_JSON *pods = NULL;
    SCOPED(log_texts_release) struct log_texts texts = {.count = 0};
    if (job_and_pods(server, request, &job, &pods, error) < 0 ||
        log_texts_read(server->cluster, &line, pods, leave_out, &texts, error) < 0)
        return -1;
    return print_log(&texts, request->index < 0, out, error);
}

static int sweep_get(struct ui_server *server, const struct waiting *request, struct buffer *out, struct error *error)
{
    SCOPED(training_sweep_release) struct training_sweep sweep = {.opaque = NULL};
    SCOPED(sweep_trials_release) struct sweep_trials trials = {.count = 0};
    SCOPED_JSON *object = NULL;
    struct json *document;
    if (sweep_read(server->cluster, request->name, &sweep, &object, error) < 0 ||
        sweep_trials_read(server->cluster, &sweep, &trials, error) < 0)
        return -1;
    if (trials.view.interrupted)
        job_mark_interrupted(object, server->cluster->again);
    if (ui_sweep_document(object, &trials.view, clock_now_ms(), &document, error) < 0)
        return -1;
    json_set_boolean(document, "kept", server->cluster->kept);
    return print_document(document, out, error);
}

static int set_suspend(struct ui_server *server, const struct waiting *request, bool suspend, struct error *error)
{
    return (request->sweep ? sweep_suspend : job_suspend)(server->cluster, request->name, suspend, error);
}

static int suspend(struct ui_server *server, const struct waiting *request, struct buffer *out, struct error *error)
{
    return set_suspend(server, request, true, error) < 0 ? -1 : buffer_append_string(out, "{}", error);
}

static int resume(struct ui_server *server, const struct waiting *request, struct buffer *out, struct error *error)
{
    return set_suspend(server, request, false, error) < 0 ? -1 : buffer_append_string(out, "{}", error);
}

static int restart(struct ui_server *server, const struct waiting *request, struct buffer *out, struct error *error)
{
    if (ui_restarts_begin(server->restarts, server->cluster, request->run, request->name, error) < 0)
        return -1;
    return buffer_append_string(out, "{}", error);
}

static int scale(struct ui_server *server, const struct waiting *request, struct buffer *out, struct error *error)
{
    if (request->workers < 0)
        return error_set(error, ERROR_INVALID, "Give the number of workers.");
    if (job_scale(server->cluster, request->name, request->workers, error) < 0)
        return -1;
    return buffer_append_string(out, "{}", error);
}

static int delete (struct ui_server *server, const struct waiting *request, struct buffer *out, struct error *error)
{
    struct resource_path path = request->sweep ? cluster_sweep_path(server->cluster, request->name)
                                               : cluster_job_path(server->cluster, request->name);
    if (server->runs && server->cluster->kept)
        return ui_runs_delete(server->runs, request->run, error) < 0 ? -1 : buffer_append_string(out, "{}", error);
    return cluster_delete(server->cluster, &path, error) < 0 ? -1 : buffer_append_string(out, "{}", error);
}

static const struct {
    const char *path, *method;
    ui_action *action;
    bool sweep, changes;
} actions[] = {
    {"/api/job", "GET", job_get, false, false},       {"/api/curves", "GET", curves_get, false, false},
    {"/api/layers", "GET", layers_get, false, false}, {"/api/log", "GET", log_get, false, false},
    {"/api/sweep", "GET", sweep_get, true, false},    {"/api/suspend", "POST", suspend, false, true},
    {"/api/resume", "POST", resume, false, true},     {"/api/restart", "POST", restart, false, true},
    {"/api/scale", "POST", scale, false, true},       {"/api/delete", "POST", delete, false, true},
    {"/api/predict", "POST", predict, false, false},  {"/api/generate", "POST", generate, false, false},
};

/* ---------------------------------------------------------------- the queue */

static void browser_gone(void *context)
{
    ((struct waiting *)context)->exchange = NULL;
}

static int64_t number_of(const struct http_exchange *exchange, const char *name, int64_t max)
{
    const char *text = http_exchange_query(exchange, name);
    int64_t number;
    return text && number_parse(text, &number) && number <= max ? number : -1;
}

static double temperature_of(const struct http_exchange *exchange)
{
    const char *text = http_exchange_query(exchange, "temperature");
    double temperature = text ? strtod(text, NULL) : TEMPERATURE_DEFAULT;
    return temperature >= 0 && temperature <= TEMPERATURE_MAX ? temperature : TEMPERATURE_DEFAULT;
}

/* 0: none, which no version is. */
static uint64_t version_of(const struct http_exchange *exchange, const char *name)
{
    const char *text = http_exchange_query(exchange, name);
    return text ? strtoull(text, NULL, 10) : 0;
}

static bool copy_query(const struct http_exchange *exchange, const char *name, char *text, size_t size)
{
    const char *value = http_exchange_query(exchange, name);
    return value && (size_t)snprintf(text, size, "%s", value) < size;
}

/* False: no object can have such a name. */
static bool read_request(const struct http_exchange *exchange, struct waiting *request)
{
    const char *kind = http_exchange_query(exchange, "kind");
    request->sweep |= kind && strcmp(kind, "sweep") == 0;
    request->index = number_of(exchange, "index", INT32_MAX);
    request->tail = number_of(exchange, "tail", TAIL_MAX);
    request->workers = number_of(exchange, "workers", INT32_MAX);
    request->known = version_of(exchange, "known");
    request->tokens = number_of(exchange, "tokens", MODEL_TOKENS_MAX);
    request->seed = number_of(exchange, "seed", INT32_MAX);
    request->temperature = temperature_of(exchange);
    copy_query(exchange, "role", request->role, sizeof request->role);
    copy_query(exchange, "run", request->run, sizeof request->run);
    return copy_query(exchange, "namespace", request->name_space, sizeof request->name_space) &&
           copy_query(exchange, "name", request->name, sizeof request->name) &&
           string_format_matches(STRING_FORMAT_NAME, request->name_space) &&
           (request->sweep ? sweep_name_holds : job_name_holds)(request->name);
}

static bool same_request(const struct waiting *left, const struct waiting *right)
{
    return left->action == right->action && left->sweep == right->sweep && left->index == right->index &&
           left->tail == right->tail && left->known == right->known &&
           strcmp(left->name_space, right->name_space) == 0 && strcmp(left->name, right->name) == 0 &&
           strcmp(left->role, right->role) == 0 && strcmp(left->run, right->run) == 0;
}

static void waiting_free(struct waiting *request)
{
    free(request->prompt);
    free(request);
}

static struct waiting *waiting_take(struct ui_server *server, unsigned at)
{
    struct waiting *request = server->waiting[at];
    struct waiting **place = server->waiting + at;
    memmove(place, place + 1, (--server->waiting_count - at) * sizeof *place);
    return request;
}

static void waiting_drop_gone(struct ui_server *server)
{
    for (unsigned i = server->waiting_count; i-- > 0;)
        if (!server->waiting[i]->exchange)
            waiting_free(waiting_take(server, i));
}

/* POST requests come before GET requests, which may take long. */
static void waiting_put(struct ui_server *server, struct waiting *request)
{
    unsigned at = server->waiting_count;
    while (request->is_post && at > 0 && !server->waiting[at - 1]->is_post)
        at--;
    memmove(server->waiting + at + 1, server->waiting + at, (server->waiting_count++ - at) * sizeof *server->waiting);
    server->waiting[at] = request;
}

static const char *trouble_of(const struct ui_server *server)
{
    return server->list ? ui_list_trouble(server->list) : "";
}

static void wait_for_turn(struct ui_server *server, struct http_exchange *exchange, ui_action *action, bool sweep,
                          bool changes)
{
    struct waiting *request = memory_allocate(1, sizeof *request);
    size_t length;
    const char *body = http_exchange_body(exchange, &length);
    *request = (struct waiting){.exchange = exchange,
                                .action = action,
                                .sweep = sweep,
                                .changes = changes,
                                .prompt = memory_copy_bytes(body, length),
                                .is_post = strcmp(http_exchange_method(exchange), "POST") == 0};
    waiting_drop_gone(server);
    bool can_be = read_request(exchange, request);
    const char *refusal = !can_be               ? "No job or sweep can have this name, or its namespace is missing."
                          : *trouble_of(server) ? trouble_of(server)
                          : server->waiting_count == WAITING_MAX
                              ? "Too many requests wait; close some of the page's windows."
                              : NULL;
    if (refusal) {
        respond_error(exchange, can_be ? 503 : 400, refusal);
        waiting_free(request);
        return;
    }
    waiting_put(server, request);
    http_exchange_defer(exchange, browser_gone, request);
}

static void answer_with(struct waiting *request, int result, const struct buffer *out, const struct error *error)
{
    struct error told = *error;
    if (request->exchange)
        respond_result(request->exchange, result, out, &told);
}

/* Equal reads that came meanwhile get the same answer, so that they do not pile up behind a slow one. */
static void answer_equal_reads(struct ui_server *server, const struct waiting *request, int result,
                               const struct buffer *out, const struct error *error)
{
    for (unsigned i = server->waiting_count; !request->is_post && i-- > 0;)
        if (same_request(server->waiting[i], request)) {
            struct waiting *equal = waiting_take(server, i);
            answer_with(equal, result, out, error);
            waiting_free(equal);
        }
}

/* Of a run that has ended nothing can be changed, but it can be deleted. */
static int check_change(const struct waiting *request, const struct ui_run *run, struct error *error)
{
    if (!request->changes || !run->kept || request->action == delete)
        return 0;
    error->http_status = 403;
    return error_set(error, ERROR_INVALID, "This run is over: start it again with cox run to change it.");
}

/* Of a run, makes the cluster and the state directory its own while the action runs. */
static int act(struct ui_server *server, const struct waiting *request, struct buffer *out, struct error *error)
{
    struct cluster *cluster = server->cluster;
    const struct cluster before = *cluster;
    const char *state = server->state;
    struct ui_run run;
    if (server->runs) {
        if (ui_runs_open(server->runs, request->run, &run, error) < 0 || check_change(request, &run, error) < 0)
            return -1;
        cluster->client = run.client;
        cluster->kept = run.kept;
        cluster->again = run.again;
        server->state = run.directory;
    }
    cluster->name_space = request->name_space;
    int result = request->action(server, request, out, error);
    cluster->client = before.client;
    cluster->kept = before.kept;
    cluster->again = before.again;
    cluster->name_space = before.name_space;
    server->state = state;
    if (server->runs && result == -1 && error->kind == ERROR_UNAVAILABLE && error->http_status == 0)
        ui_runs_close(server->runs,
                      request->run); /* its `cox run` has ended: the next request starts a control plane */
    return result;
}

static void answer(struct ui_server *server, struct waiting *request)
{
    SCOPED_BUFFER out;
    struct error error = ERROR_INIT;
    buffer_init(&out, ANSWER_MAX);
    int result = act(server, request, &out, &error);
    if (result == ANSWERED_LATER)
        return;
    if (server->cluster->interrupted)
        result = -1;
    answer_with(request, result, &out, &error);
    answer_equal_reads(server, request, result, &out, &error);
}

/* For ui_restarts_work. */
static bool enter_run(void *context, const char *name)
{
    struct ui_server *server = context;
    struct ui_run run;
    if (ui_runs_open(server->runs, name, &run, NULL) < 0 || run.kept)
        return false;
    server->cluster->client = run.client;
    return true;
}

static void work_on_runs(struct ui_server *server)
{
    struct kube_client *client = server->cluster->client;
    ui_restarts_work(server->restarts, server->cluster, enter_run, server);
    server->cluster->client = client;
    ui_runs_work(server->runs);
}

void ui_server_work(struct ui_server *server)
{
    while (server->waiting_count > 0 && !server->cluster->interrupted) {
        struct waiting *request = waiting_take(server, 0);
        if (request->exchange)
            answer(server, request);
        waiting_free(request);
    }
    if (server->runs && ui_streams_count(server->streams) > 0)
        ui_runs_read(server->runs);
    ui_streams_work(server->streams);
    if (server->runs)
        work_on_runs(server);
    else if (!*trouble_of(server))
        ui_restarts_work(server->restarts, server->cluster, NULL, NULL);
}

/* ---------------------------------------------------------------- requests */

static uint64_t list_version(void *context)
{
    const struct ui_server *server = context;
    return server->runs ? ui_runs_version(server->runs) : ui_list_version(server->list);
}

static int write_list(void *context, uint64_t since, struct buffer *out, struct error *error)
{
    const struct ui_server *server = context;
    return server->runs ? ui_runs_write(server->runs, since, out, error)
                        : ui_list_write(server->list, since, out, error);
}

static void respond_list(struct ui_server *server, struct http_exchange *exchange)
{
    SCOPED_BUFFER out;
    struct error error = ERROR_INIT;
    buffer_init(&out, ANSWER_MAX);
    int result = write_list(server, version_of(exchange, "since"), &out, &error);
    respond_result(exchange, result, &out, &error);
}

static void respond_events(struct ui_server *server, struct http_exchange *exchange)
{
    if (ui_streams_count(server->streams) == STREAMS_MAX) {
        respond_error(exchange, 503, "All event streams are in use; poll /api/list instead.");
        return;
    }
    set_headers(exchange);
    ui_streams_open(server->streams, exchange, version_of(exchange, "since"));
}

static void route(struct ui_server *server, struct http_exchange *exchange)
{
    const char *path = http_exchange_path(exchange), *method = http_exchange_method(exchange);
    const struct ui_asset *asset = ui_asset_find(path);
    bool reads = strcmp(method, "GET") == 0;
    if (asset && reads) {
        respond(exchange, 200, asset->content_type, asset->bytes, (size_t)(asset->end - asset->bytes));
        return;
    }
    if (strcmp(path, "/api/list") == 0 && reads) {
        respond_list(server, exchange);
        return;
    }
    if (strcmp(path, "/api/events") == 0 && reads) {
        respond_events(server, exchange);
        return;
    }
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (strcmp(actions[i].path, path) == 0 && strcmp(actions[i].method, method) == 0) {
            if (!actions[i].changes || !server->kept)
                wait_for_turn(server, exchange, actions[i].action, actions[i].sweep, actions[i].changes);
            else
                respond_error(exchange, 403,
                              "This run is over, and is only shown: start it again with cox run to change it.");
            return;
        }
    respond_error(exchange, 404, "There is nothing at this address.");
}

static void set_cookie(struct ui_server *server, struct http_exchange *exchange)
{
    SCOPED_FREE char *cookie =
        memory_format("%s=%s; HttpOnly; SameSite=Strict; Path=/", server->gate.cookie, server->gate.token);
    http_exchange_set_header(exchange, "Set-Cookie", cookie);
}

static void handle(void *context, struct http_exchange *exchange)
{
    struct ui_server *server = context;
    const struct ui_request request = {.method = http_exchange_method(exchange),
                                       .host = http_exchange_header(exchange, "Host"),
                                       .origin = http_exchange_header(exchange, "Origin"),
                                       .fetch_site = http_exchange_header(exchange, "Sec-Fetch-Site"),
                                       .cookies = http_exchange_header(exchange, "Cookie"),
                                       .token = http_exchange_query(exchange, "token")};
    enum ui_verdict verdict = ui_gate_judge(&server->gate, &request);
    if (verdict == UI_ADMITTED_BY_URL)
        set_cookie(server, exchange);
    if (verdict == UI_ADMITTED || verdict == UI_ADMITTED_BY_URL) {
        route(server, exchange);
        return;
    }
    const char *sentence;
    int status = ui_verdict_status(verdict, &sentence);
    respond_text(exchange, status, sentence);
}

/* ---------------------------------------------------------------- life */

int ui_server_start(struct cluster *cluster, const struct ui_server_options *options, struct ui_server **ret_server,
                    struct error *error)
{
    struct ui_server *server = memory_allocate(1, sizeof *server);
    struct http_server_options http = {.address = "127.0.0.1",
                                       .port = options->port,
                                       .exclusive = true,
                                       .max_body = BODY_MAX,
                                       .max_connections = CONNECTIONS_MAX,
                                       .handler = handle,
                                       .context = server};
    server->cluster = cluster;
    server->kept = options->kept;
    server->state = options->state;
    if (ui_gate_init(&server->gate, error) < 0 ||
        http_server_start_on_loop(&http, cluster->loop, &server->http, error) < 0) {
        free(server);
        return -1;
    }
    ui_gate_set_port(&server->gate, http_server_port(server->http));
    if (options->runs)
        server->runs = ui_runs_new(cluster->loop);
    else
        server->list = ui_list_start(cluster->client, options->name_space, options->kept);
    const struct ui_stream_source source = {.version = list_version, .write = write_list, .context = server};
    server->streams = ui_streams_new(&source);
    server->curves = ui_curves_new();
    server->restarts = ui_restarts_new();
    server->models = model_uses_new(cluster->loop);
    *ret_server = server;
    return 0;
}

void ui_server_free(struct ui_server *server)
{
    http_server_free(server->http);
    model_uses_free(server->models);
    ui_streams_free(server->streams);
    while (server->waiting_count > 0)
        waiting_free(waiting_take(server, 0));
    ui_curves_free(server->curves);
    ui_restarts_free(server->restarts);
    if (server->list)
        ui_list_free(server->list);
    if (server->runs)
        ui_runs_free(server->runs);
    free(server);
}

char *ui_server_url(const struct ui_server *server)
{
    return memory_format("http://127.0.0.1:%u/?token=%s", http_server_port(server->http), server->gate.token);
}
