/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "common/lock.h"
#include "worker/parameter_server/dispatcher_parts.h"

void dispatcher_name_server(const struct dispatcher *dispatcher, unsigned number, char name[WAITING_NAME_MAX])
{
    waiting_name("ps", number, &dispatcher->options.servers[number], name);
}

void dispatcher_name_worker(const struct dispatcher *dispatcher, unsigned worker, char name[WAITING_NAME_MAX])
{
    const struct crew_seat *seat = NULL;
    for (unsigned i = 0; i < dispatcher->options.worker_count && seat == NULL; i++)
        if (strcmp(dispatcher->options.workers[i].role, "worker") == 0 &&
            dispatcher->options.workers[i].index == worker)
            seat = &dispatcher->options.workers[i];
    waiting_name("worker", worker, seat, name);
}

static bool is_long(const struct dispatcher *dispatcher, int64_t since_ms, bool is_there)
{
    return dispatcher_now_ms() - since_ms >= waiting_patience_ms(dispatcher->options.patience_ms, is_there);
}

/* Returns what a connected server was told to do and has not done yet; NULL: nothing. */
static const char *undone(const struct dispatcher *dispatcher, const struct led_server *server)
{
    if (server->starting)
        return "to take its state";
    if (dispatcher_awaits_disk(server))
        return "to write its shard";
    if (dispatcher->phase == PHASE_REDUCING && !server->reduced)
        return "to sum the step's shares";
    if (dispatcher->phase == PHASE_APPLYING && !server->stepped)
        return "to apply the step";
    return NULL;
}

static void describe_servers(const struct dispatcher *dispatcher, char text[PS_TEXT_MAX])
{
    for (unsigned i = 0; i < dispatcher->options.server_count; i++) {
        const struct led_server *server = &dispatcher->servers[i];
        const char *what = server->stands ? undone(dispatcher, server) : "";
        char name[WAITING_NAME_MAX];
        if (what == NULL || !is_long(dispatcher, server->asked_ms, server->stands))
            continue;
        dispatcher_name_server(dispatcher, i, name);
        waiting_add(text, name, what);
    }
}

/* Others may go on meanwhile, as long as they do. */
static bool all_wait(const struct dispatcher *dispatcher)
{
    return dispatcher->options.scheduler.mode == PARAMETER_SERVER_SYNCHRONOUS ||
           is_long(dispatcher, dispatcher->done_ms, true);
}

/* Names the workers that have fallen silent; if there are none and all others wait, the worker with the share that they wait for. */
static void describe_workers(const struct dispatcher *dispatcher, char text[PS_TEXT_MAX])
{
    char name[WAITING_NAME_MAX];
    for (const struct worker_session *session = dispatcher->sessions; session != NULL; session = session->next) {
        if (!session->joined || !is_long(dispatcher, session->heard_ms, false))
            continue;
        dispatcher_name_worker(dispatcher, session->worker, name);
        waiting_add(text, name, "to be heard of");
    }
    unsigned worker;
    int64_t ns, now_ns = clock_monotonic_ns();
    if (text[0] || !all_wait(dispatcher) || !ticket_scheduler_slowest(dispatcher->scheduler, now_ns, &worker, &ns) ||
        !is_long(dispatcher, dispatcher_now_ms() - ns / 1000000, true))
        return;
    dispatcher_name_worker(dispatcher, worker, name);
    waiting_add(text, name, "to finish its share");
}

void dispatcher_describe(struct dispatcher *dispatcher, char text[PS_TEXT_MAX])
{
    text[0] = '\0';
    SCOPED_LOCK(&dispatcher->lock);
    describe_servers(dispatcher, text);
    bool open = !text[0] && dispatcher->scheduler != NULL && dispatcher->phase != PHASE_OVER;
    if (open)
        describe_workers(dispatcher, text);
    if (open && !text[0] && ticket_scheduler_live(dispatcher->scheduler) == 0)
        snprintf(text, PS_TEXT_MAX, "waiting for workers");
}
