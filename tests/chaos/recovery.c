/* SPDX-License-Identifier: Apache-2.0
 *
 * recovery: kills one member of a crew and measures from outside how long the crew stands still.
 *
 *   recovery PROCESS WITNESS-ADDRESS
 *
 * SIGKILL to PROCESS, then the status document of another member every 5 ms, until it has waited and then applied a
 * further step. Prints the milliseconds between the two. Ends with 1 when that does not happen within 30 s, with 3 when
 * there was no such process any more.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/contract/status_document.h"
#include "common/http_client.h"

#define EXIT_NOBODY 3
#define INTERVAL_MS 5
#define PATIENCE_NS (30 * INT64_C(1000000000))

struct recovery {
    struct event_loop *loop;
    struct http_client *client;
    char url[128];
    pid_t victim;
    int64_t killed_ns;
    int64_t waited_at; /* the witness's last step when it was seen waiting; STATUS_UNKNOWN: not yet */
    int64_t stepped_ns;
};

static void ask(void *context);

static void take(struct recovery *recovery, const struct status_document *document)
{
    if (document->phase == STATUS_WAITING)
        recovery->waited_at = document->step;
    else if (recovery->waited_at != STATUS_UNKNOWN && document->step > recovery->waited_at)
        recovery->stepped_ns = clock_monotonic_ns();
}

static void answered(void *context, const struct http_response *response)
{
    struct recovery *recovery = context;
    struct status_document document;
    if (response->status == 200 && status_document_parse(response->body, response->body_length, &document, NULL) == 0)
        take(recovery, &document);
    if (recovery->stepped_ns > 0 || clock_monotonic_ns() - recovery->killed_ns > PATIENCE_NS)
        event_loop_stop(recovery->loop);
    else
        event_timer_start(recovery->loop, INTERVAL_MS, ask, recovery);
}

static void ask(void *context)
{
    struct recovery *recovery = context;
    const struct http_request request = {
        .method = "GET", .url = recovery->url, .timeout_ms = 2000, .done = answered, .context = recovery};
    http_client_start(recovery->client, &request);
}

static int measure(struct recovery *recovery, struct error *error)
{
    const struct http_client_options options = {.max_connections = 1};
    if (event_loop_new(&recovery->loop, error) < 0 ||
        http_client_new(recovery->loop, &options, &recovery->client, error) < 0)
        return -1;
    int64_t now = clock_monotonic_ns();
    if (kill(recovery->victim, SIGKILL) < 0)
        return error_set_errno(error, "kill process %d", (int)recovery->victim);
    recovery->killed_ns = now;
    ask(recovery);
    if (event_loop_run(recovery->loop, error) < 0)
        return -1;
    if (recovery->stepped_ns == 0)
        return error_set(error, ERROR_TIMEOUT, "the crew of %s does not step on", recovery->url);
    return 0;
}

int main(int count, char **words)
{
    struct recovery recovery = {.waited_at = STATUS_UNKNOWN};
    struct error error = ERROR_INIT;
    recovery.victim = count == 3 ? (pid_t)strtol(words[1], NULL, 10) : 0;
    if (recovery.victim <= 1) {
        fputs("usage: recovery PROCESS WITNESS-ADDRESS\n", stderr);
        return 2;
    }
    snprintf(recovery.url, sizeof recovery.url, "http://%s:8080/status", words[2]);
    int result = measure(&recovery, &error);
    if (result < 0)
        fprintf(stderr, "recovery: %s\n", error.message);
    else
        printf("%" PRId64 "\n", (recovery.stepped_ns - recovery.killed_ns) / 1000000);
    if (recovery.client)
        http_client_free(recovery.client);
    if (recovery.loop)
        event_loop_free(recovery.loop);
    return result == 0 ? EXIT_SUCCESS : recovery.killed_ns == 0 ? EXIT_NOBODY : EXIT_FAILURE;
}
