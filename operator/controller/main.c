/* SPDX-License-Identifier: Apache-2.0
 *
 * coxswain-operator: credentials, one loop, the controller on it, and a small HTTP
 * server for probes and metrics.
 */
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/contract/environment.h"
#include "common/contract/labels.h"
#include "common/http_server.h"
#include "common/memory.h"
#include "common/version.h"
#include "operator/controller/controller.h"
#include "operator/controller/heap_trim.h"
#include "operator/controller/options.h"
#include "operator/controller/push_server.h"
#include "operator/controller/sweep_controller.h"
#include "operator/kube/lease.h"

#define METRICS_MAX (1024 * 1024)
/* The port is open to all clients, and the kubelet ends the operator if its probes get no connection. */
#define CONNECTIONS_MAX 256
#define IDLE_SECONDS 10
#define HEAP_TRIM_MS 10000 /* a walk over the free pieces of a large heap takes milliseconds */
#define EXIT_USAGE 64
#define EXIT_UNAVAILABLE 69
#define EXIT_LOST_LEASE 1

struct operator_state {
    struct options options;
    struct kube_config config;
    struct event_loop *loop;
    struct kube_client *client;
    struct http_client *pods_client;
    struct http_server *server;
    struct lease *lease;
    struct controller *controller;
    struct sweep_controller *sweeps;
    struct push_server *push; /* NULL: scripts cannot send their progress */
    struct heap_trim *heap_trim;
    char identity[128];
    int exit_code;
};

/* ---------------------------------------------------------------- probes and metrics */

static void respond_text(struct http_exchange *exchange, int status, const char *text)
{
    http_exchange_respond(exchange, status, "text/plain; charset=utf-8", text, strlen(text));
}

/* A standby is ready too: a Deployment must be able to roll. */
static bool is_ready(const struct operator_state *state)
{
    if (state->options.leader_elect && !lease_held(state->lease))
        return true;
    return state->controller && controller_synced(state->controller) && !controller_refusal(state->controller);
}

static void respond_readiness(const struct operator_state *state, struct http_exchange *exchange)
{
    const struct error *refusal = state->controller ? controller_refusal(state->controller) : NULL;
    if (is_ready(state)) {
        respond_text(exchange, 200, "ok\n");
    } else if (refusal) {
        SCOPED_FREE char *words = memory_format("the caches are out of date: %s\n", refusal->message);
        respond_text(exchange, 503, words);
    } else {
        respond_text(exchange, 503, "the caches are not complete yet\n");
    }
}

static void respond_metrics(const struct operator_state *state, struct http_exchange *exchange)
{
    struct error error = ERROR_INIT;
    SCOPED_BUFFER text = BUFFER_INIT(METRICS_MAX);
    bool leads = !state->options.leader_elect || lease_held(state->lease);
    buffer_format(&text,
                  "# HELP coxswain_leader Whether this operator is the one that acts (1) or a standby (0).\n# TYPE "
                  "coxswain_leader gauge\ncoxswain_leader %d\n",
                  leads);
    buffer_append_string(&text,
                         "# HELP coxswain_build_info The release that runs; always 1.\n"
                         "# TYPE coxswain_build_info gauge\n"
                         "coxswain_build_info{version=\"" COXSWAIN_VERSION "\"} 1\n",
                         NULL);
    if (kube_client_write_metrics(state->client, &text, &error) < 0 ||
        (state->controller && controller_write_metrics(state->controller, &text, &error) < 0))
        respond_text(exchange, 500, error.message);
    else
        http_exchange_respond(exchange, 200, "text/plain; version=0.0.4; charset=utf-8", text.data, text.length);
}

static void handle(void *context, struct http_exchange *exchange)
{
    const struct operator_state *state = context;
    const char *path = http_exchange_path(exchange);
    if (strcmp(path, "/healthz") == 0)
        respond_text(exchange, 200, "ok\n");
    else if (strcmp(path, "/readyz") == 0)
        respond_readiness(state, exchange);
    else if (strcmp(path, "/metrics") == 0)
        respond_metrics(state, exchange);
    else
        respond_text(exchange, 404, "there are /healthz, /readyz and /metrics\n");
}

static int start_server(struct operator_state *state, struct error *error)
{
    struct http_server_options options = {
        .address = state->options.metrics_address,
        .port = state->options.metrics_port,
        .max_connections = CONNECTIONS_MAX,
        .idle_seconds = IDLE_SECONDS,
        .handler = handle,
        .context = state,
    };
    if (http_server_start_on_loop(&options, state->loop, &state->server, error) < 0)
        return error_wrap(error, "--metrics-address");
    SCOPED_FREE char *port = memory_format("%u", http_server_port(state->server));
    log_info("serving metrics", "address", state->options.metrics_address, "port", port, NULL);
    return 0;
}

/* ---------------------------------------------------------------- leading */

static void lead(void *context)
{
    struct operator_state *state = context;
    struct controller_options options = {
        .name_space = state->options.name_space,
        .instance = state->identity,
        .holds_lease = state->options.leader_elect,
        .notification_sink = state->options.notification_sink,
        .sick_node_ms = state->options.sick_node_ms,
        .plan = plan_options_default,
    };
    options.plan.controller_name = state->options.controller_name;
    options.plan.pods.worker_image = state->options.worker_image;
    options.plan.pods.machine_gpus = state->options.machine_gpus;
    options.plan.pods.coscheduling_scheduler = state->options.coscheduling_scheduler;
    if (state->push)
        options.plan.pods.push = push_server_endpoint(state->push);
    if (state->options.certificate_period_ms > 0)
        options.plan.certificate_period_ms = state->options.certificate_period_ms;
    state->controller = controller_start(state->client, state->pods_client, &options);
    if (state->push)
        push_server_set_controller(state->push, state->controller);
    state->sweeps =
        sweep_controller_start(state->client, options.name_space, state->options.controller_name, options.instance);
    log_info("controlling jobs", "namespace", options.name_space ? options.name_space : "(all)", "name",
             state->options.controller_name, NULL);
}

static void push_failed(void *context, const struct error *error)
{
    struct operator_state *state = context;
    log_error(error->message, NULL);
    state->exit_code = EXIT_UNAVAILABLE;
    event_loop_stop(state->loop);
}

/* Pods are created once it is known how their scripts report. */
static void elected(void *context)
{
    struct operator_state *state = context;
    if (*state->options.progress_address == '\0') {
        lead(state);
        return;
    }
    const char *given = state->options.lease_namespace;
    struct push_server_options options = {
        .address = state->options.progress_address,
        .port = state->options.progress_port,
        .name_space = given ? given : state->config.name_space,
        .service = state->options.progress_service,
        .pod_ip = getenv(ENV_POD_IP),
        .ready = lead,
        .failed = push_failed,
        .context = state,
    };
    state->push = push_server_start(state->client, &options);
}

/* The successor may act already; a fresh process starts from nothing but the API. */
static void lost(void *context, const struct error *error)
{
    struct operator_state *state = context;
    log_error("the lease is lost, ending with exit code 1 to be started again", "why", error->message, NULL);
    state->exit_code = EXIT_LOST_LEASE;
    event_loop_stop(state->loop);
}

static void lease_trouble(void *context, const struct error *error)
{
    (void)context;
    log_warning("the lease could not be renewed, trying again", "why", error->message, NULL);
}

static void start_leading(struct operator_state *state)
{
    if (!state->options.leader_elect) {
        elected(state);
        return;
    }
    const char *given = state->options.lease_namespace;
    struct lease_options options = {
        .name_space = given ? given : state->config.name_space,
        .name = state->options.lease_name,
        .identity = state->identity,
        .on_elected = elected,
        .on_lost = lost,
        .on_failure = lease_trouble,
        .context = state,
    };
    state->lease = lease_start(state->client, &options);
    log_info("competing for the lease", "identity", state->identity, NULL);
}

static void released(void *context, const struct error *error)
{
    struct operator_state *state = context;
    if (error)
        log_warning("the lease could not be released", "why", error->message, NULL);
    event_loop_stop(state->loop);
}

static void end_asked(void *context, int signal_number)
{
    struct operator_state *state = context;
    log_info("ending after a signal", "signal", strsignal(signal_number), NULL);
    if (state->lease && lease_held(state->lease))
        lease_release(state->lease, released, state);
    else
        event_loop_stop(state->loop);
}

/* ---------------------------------------------------------------- life cycle */

static void make_identity(struct operator_state *state)
{
    char host[80] = "operator";
    uint32_t random = 0;
    gethostname(host, sizeof host - 1);
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        random = (uint32_t)getpid();
    snprintf(state->identity, sizeof state->identity, "%s_%08x", host, random);
}

static int start_clients(struct operator_state *state, struct error *error)
{
    struct kube_client_options options = {.user_agent = OPERATOR_NAME};
    struct http_client_options pods = {.user_agent = OPERATOR_NAME};
    if (kube_config_load(state->options.kubeconfig, NULL, &state->config, error) < 0)
        return -1;
    log_info("using this API server", "url", state->config.server, "credentials", state->config.source, NULL);
    if (state->config.insecure_skip_tls_verify)
        log_warning("the API server's certificate is not verified, as the kubeconfig asks for", NULL);
    if (kube_client_new(state->loop, &state->config, &options, &state->client, error) < 0)
        return -1;
    return http_client_new(state->loop, &pods, &state->pods_client, error);
}

static int start(struct operator_state *state, struct error *error)
{
    make_identity(state);
    if (event_loop_new(&state->loop, error) < 0 ||
        event_loop_on_signal(state->loop, SIGTERM, end_asked, state, error) < 0 ||
        event_loop_on_signal(state->loop, SIGINT, end_asked, state, error) < 0 || start_clients(state, error) < 0)
        return -1;
    state->heap_trim = heap_trim_start(state->loop, HEAP_TRIM_MS);
    start_leading(state);
    return start_server(state, error);
}

static void stop(struct operator_state *state)
{
    heap_trim_end(state->heap_trim);
    if (state->server)
        http_server_free(state->server);
    if (state->push)
        push_server_stop(state->push);
    if (state->controller)
        controller_stop(state->controller);
    if (state->sweeps)
        sweep_controller_stop(state->sweeps);
    if (state->lease)
        lease_free(state->lease);
    if (state->client)
        kube_client_free(state->client);
    if (state->controller)
        controller_free(state->controller);
    if (state->sweeps)
        sweep_controller_free(state->sweeps);
    if (state->push)
        push_server_free(state->push);
    if (state->pods_client)
        http_client_free(state->pods_client);
    if (state->loop)
        event_loop_free(state->loop);
    kube_config_release(&state->config);
}

int main(int count, char **arguments)
{
    struct operator_state state = {0};
    struct error error = ERROR_INIT;
    if (options_parse(count, arguments, &state.options, &error) < 0) {
        fprintf(stderr, "coxswain-operator: %s\n", error.message);
        return EXIT_USAGE;
    }
    if (state.options.progress_service && !getenv(ENV_POD_IP)) {
        fputs("coxswain-operator: --progress-service needs the pod's address in " ENV_POD_IP
              " (fieldRef: status.podIP)\n",
              stderr);
        return EXIT_USAGE;
    }
    if (state.options.help || state.options.version) {
        fputs(state.options.help ? options_usage : "coxswain-operator " COXSWAIN_VERSION "\n", stdout);
        return 0;
    }
    log_configure(state.options.log_level, state.options.log_format);
    mallopt(M_ARENA_MAX, 1); /* one thread works; others would only hold memory back */
    if (start(&state, &error) < 0 || event_loop_run(state.loop, &error) < 0) {
        log_error(error.message, NULL);
        state.exit_code = EXIT_UNAVAILABLE;
    }
    stop(&state);
    return state.exit_code;
}
