/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/node_probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/memory.h"

struct probe {
    struct event_loop *loop;
    struct http_client *client;
    char *url; /* NULL: TCP */
    struct sockaddr_in address;
    int64_t period_ms, timeout_ms;
    int64_t success_threshold, failure_threshold;
    bool eager;
    probe_verdict *verdict;
    void *context;

    struct event_timer *timer;
    struct http_transfer *transfer;
    int connection;
    int64_t successes, failures; /* in a row */
    enum { UNDECIDED, PASSES, FAILS } state;
};

static void attempt(void *context);

static void schedule(struct probe *probe)
{
    bool hurry = probe->eager && probe->state != PASSES;
    int64_t delay = hurry && probe->period_ms > PROBE_EAGER_MS ? PROBE_EAGER_MS : probe->period_ms;
    probe->timer = event_timer_start(probe->loop, delay, attempt, probe);
}

static void settle(struct probe *probe, bool success)
{
    probe->successes = success ? probe->successes + 1 : 0;
    probe->failures = success ? 0 : probe->failures + 1;
    schedule(probe);
    if (success && probe->state != PASSES && probe->successes >= probe->success_threshold) {
        probe->state = PASSES;
        probe->verdict(probe->context, true);
    } else if (!success && probe->state != FAILS && probe->failures >= probe->failure_threshold) {
        probe->state = FAILS;
        probe->verdict(probe->context, false);
    }
}

/* ---------------------------------------------------------------- HTTP */

static void http_answered(void *context, const struct http_response *response)
{
    struct probe *probe = context;
    probe->transfer = NULL;
    if (response->error && response->error->kind == ERROR_CANCELLED)
        return;
    settle(probe, response->status >= 200 && response->status < 400);
}

static void attempt_http(struct probe *probe)
{
    struct http_request request = {.method = "GET",
                                   .url = probe->url,
                                   .max_body = 64 * 1024,
                                   .timeout_ms = probe->timeout_ms,
                                   .done = http_answered,
                                   .context = probe};
    probe->transfer = http_client_start(probe->client, &request);
}

/* ---------------------------------------------------------------- TCP */

static void connection_end(struct probe *probe, bool success)
{
    event_loop_unwatch(probe->loop, probe->connection);
    close(probe->connection);
    probe->connection = -1;
    if (probe->timer)
        event_timer_cancel(probe->timer);
    probe->timer = NULL;
    settle(probe, success);
}

static void connection_ready(void *context, int descriptor, enum event_interest what)
{
    (void)what;
    int failure = 0;
    socklen_t size = sizeof failure;
    getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &failure, &size);
    connection_end(context, failure == 0);
}

static void connection_late(void *context)
{
    struct probe *probe = context;
    probe->timer = NULL;
    connection_end(probe, false);
}

static void attempt_tcp(struct probe *probe)
{
    int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool under_way =
        connection >= 0 &&
        (connect(connection, (struct sockaddr *)&probe->address, sizeof probe->address) == 0 || errno == EINPROGRESS) &&
        event_loop_watch(probe->loop, connection, EVENT_WRITE, connection_ready, probe, NULL) == 0;
    if (!under_way) {
        if (connection >= 0)
            close(connection);
        settle(probe, false);
        return;
    }
    probe->connection = connection;
    probe->timer = event_timer_start(probe->loop, probe->timeout_ms, connection_late, probe);
}

static void attempt(void *context)
{
    struct probe *probe = context;
    probe->timer = NULL;
    if (probe->url)
        attempt_http(probe);
    else
        attempt_tcp(probe);
}

/* ---------------------------------------------------------------- from the API */

static int64_t port_number(const struct json *port, const struct json *container)
{
    if (json_type(port) == JSON_NUMBER)
        return json_integer(port, 0);
    const char *name = json_string(port, "");
    for (const struct json *item = json_first(json_member(container, "ports")); item; item = json_next(item)) {
        if (strcmp(json_string_at(item, "name", ""), name) == 0)
            return json_integer_at(item, "containerPort", 0);
    }
    return strtol(name, NULL, 10);
}

static int64_t seconds_of(const struct json *spec, const char *name, int64_t otherwise)
{
    return 1000 * json_integer_at(spec, name, otherwise);
}

static int probe_aim(struct probe *probe, const struct probe_target *target, const struct json *spec,
                     struct error *error)
{
    const struct json *http = json_member(spec, "httpGet"), *tcp = json_member(spec, "tcpSocket");
    if (!http && !tcp)
        return error_set(
            error, ERROR_UNSUPPORTED,
            "the embedded control plane supports probes with httpGet and tcpSocket only; this probe counts as passed");
    if (strcmp(json_string_at(http, "scheme", "HTTP"), "HTTP") != 0)
        return error_set(error, ERROR_UNSUPPORTED,
                         "the embedded control plane does not probe over HTTPS; this probe counts as passed");
    int64_t port = port_number(json_member(http ? http : tcp, "port"), target->container);
    if (port < 1 || port > 65535)
        return error_set(error, ERROR_INVALID, "the probe's port is neither a number nor the name of a containerPort");
    const char *host = json_string_at(http ? http : tcp, "host", target->address);
    const char *path = json_string_at(http, "path", "/");
    if (http) {
        probe->url = memory_format("http://%s:%d%s%s", host, (int)port, *path == '/' ? "" : "/", path);
        return 0;
    }
    probe->address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, host, &probe->address.sin_addr) != 1)
        return error_set(error, ERROR_INVALID, "tcpSocket.host \"%s\": write an IPv4 address", host);
    return 0;
}

int probe_start(const struct probe_target *target, const struct json *spec, bool eager, probe_verdict *verdict,
                void *context, struct probe **ret_probe, struct error *error)
{
    struct probe *probe = memory_allocate(1, sizeof *probe);
    *probe = (struct probe){
        .loop = target->loop,
        .client = target->client,
        .period_ms = seconds_of(spec, "periodSeconds", 10),
        .timeout_ms = seconds_of(spec, "timeoutSeconds", 1),
        .success_threshold = json_integer_at(spec, "successThreshold", 1),
        .failure_threshold = json_integer_at(spec, "failureThreshold", 3),
        .eager = eager,
        .verdict = verdict,
        .context = context,
        .connection = -1,
    };
    if (probe_aim(probe, target, spec, error) < 0) {
        probe_free(probe);
        return -1;
    }
    probe->timer = event_timer_start(probe->loop, seconds_of(spec, "initialDelaySeconds", 0), attempt, probe);
    *ret_probe = probe;
    return 0;
}

void probe_free(struct probe *probe)
{
    if (probe->timer)
        event_timer_cancel(probe->timer);
    if (probe->transfer)
        http_transfer_cancel(probe->transfer);
    if (probe->connection >= 0) {
        event_loop_unwatch(probe->loop, probe->connection);
        close(probe->connection);
    }
    free(probe->url);
    free(probe);
}
