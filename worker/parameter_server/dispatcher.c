/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/dispatcher.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/condition.h"
#include "common/lock.h"
#include "common/memory.h"
#include "worker/parameter_server/dispatcher_parts.h"

#define TICK_MS 50

void dispatcher_fail(struct dispatcher *dispatcher, enum error_kind kind, const char *text)
{
    if (dispatcher->fatal.kind == ERROR_NONE)
        error_set(&dispatcher->fatal, kind, "%s", text);
    pthread_cond_broadcast(&dispatcher->changed);
}

/* Finds the event to drop when all places are taken: first a step that the chief has not asked for yet, then a text. Events that the
 * chief must act upon are dropped last; if they fill all places, one more or less of a kind makes no difference. */
static unsigned find_expendable(const struct dispatcher *dispatcher)
{
    static const enum dispatcher_event_kind order[] = {EVENT_STEP, EVENT_TEXT, EVENT_SERVER_LOST, EVENT_SERVER_LEAVING};
    for (unsigned k = 0; k < sizeof order / sizeof *order; k++)
        for (unsigned i = 0; i < dispatcher->event_count; i++)
            if (dispatcher->events[(dispatcher->first_event + i) % EVENTS_MAX].kind == order[k])
                return i;
    return 0;
}

/* Those before it move up. */
static void drop_event(struct dispatcher *dispatcher, unsigned number)
{
    for (unsigned i = number; i > 0; i--)
        dispatcher->events[(dispatcher->first_event + i) % EVENTS_MAX] =
            dispatcher->events[(dispatcher->first_event + i - 1) % EVENTS_MAX];
    dispatcher->first_event = (dispatcher->first_event + 1) % EVENTS_MAX;
    dispatcher->event_count--;
}

void dispatcher_tell(struct dispatcher *dispatcher, const struct dispatcher_event *event)
{
    if (dispatcher->event_count == EVENTS_MAX)
        drop_event(dispatcher, find_expendable(dispatcher));
    struct dispatcher_event *place =
        &dispatcher->events[(dispatcher->first_event + dispatcher->event_count++) % EVENTS_MAX];
    *place = *event;
    place->at_ns = clock_monotonic_ns();
    pthread_cond_broadcast(&dispatcher->changed);
}

void dispatcher_say(struct dispatcher *dispatcher, const char *format, ...)
{
    struct dispatcher_event event = {.kind = EVENT_TEXT};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(event.text, sizeof event.text, format, arguments);
    va_end(arguments);
    dispatcher_tell(dispatcher, &event);
}

static void tick(void *context)
{
    struct dispatcher *dispatcher = context;
    SCOPED_LOCK(&dispatcher->lock);
    if (dispatcher->task) {
        dispatcher->task(dispatcher, dispatcher->task_context);
        dispatcher->task = NULL;
        pthread_cond_broadcast(&dispatcher->changed);
    }
    dispatcher_servers_tick(dispatcher);
    dispatcher_sessions_tick(dispatcher);
}

static void wake(void *context)
{
    rpc_wake(((struct dispatcher *)context)->rpc);
}

static const struct rpc_method methods[] = {{PS_METHOD_TICKETS, dispatcher_session_opened}};

static int open_all(struct dispatcher *dispatcher, struct error *error)
{
    const struct dispatcher_options *options = &dispatcher->options;
    if (rpc_new(tick, dispatcher, TICK_MS, &dispatcher->rpc, error) < 0 ||
        address_book_new(options->servers, options->server_count, wake, dispatcher, &dispatcher->book, error) < 0 ||
        rpc_server_start(dispatcher->rpc, options->listen_address, options->port, methods, 1, dispatcher,
                         &dispatcher->listener, error) < 0)
        return -1;
    dispatcher_servers_init(dispatcher);
    rpc_start_ticks(dispatcher->rpc);
    return 0;
}

int dispatcher_start(const struct dispatcher_options *options, struct dispatcher **ret_dispatcher, struct error *error)
{
    struct dispatcher *dispatcher = memory_allocate(1, sizeof *dispatcher);
    dispatcher->options = *options;
    dispatcher->started_ms = dispatcher_now_ms();
    dispatcher->job_uid = memory_copy_string(options->job_uid);
    dispatcher->sums.squares = -1;
    dispatcher->stragglers = stragglers_new(TICKET_SCHEDULER_WORKERS_MAX, NULL);
    pthread_mutex_init(&dispatcher->lock, NULL);
    condition_init(&dispatcher->changed);
    for (unsigned i = 0; i < options->server_count; i++) {
        dispatcher->servers[i].dispatcher = dispatcher;
        dispatcher->servers[i].number = i;
        dispatcher->servers[i].asked_ms = dispatcher_now_ms();
    }
    if (open_all(dispatcher, error) < 0) {
        dispatcher_free(dispatcher);
        return -1;
    }
    *ret_dispatcher = dispatcher;
    return 0;
}

uint16_t dispatcher_port(const struct dispatcher *dispatcher)
{
    return rpc_server_port(dispatcher->listener);
}

void dispatcher_free(struct dispatcher *dispatcher)
{
    if (dispatcher == NULL)
        return;
    if (dispatcher->rpc)
        rpc_stop(dispatcher->rpc);
    address_book_free(dispatcher->book);
    if (dispatcher->rpc)
        rpc_free(dispatcher->rpc);
    for (unsigned i = 0; i < dispatcher->options.server_count; i++) {
        ticket_set_release(&dispatcher->servers[i].standing.tickets);
        ticket_set_release(&dispatcher->servers[i].settled);
        ticket_set_release(&dispatcher->servers[i].lost);
        ticket_set_release(&dispatcher->servers[i].hollow);
        ps_message_release(&dispatcher->servers[i].save);
    }
    ticket_scheduler_free(dispatcher->scheduler);
    stragglers_free(dispatcher->stragglers);
    pthread_cond_destroy(&dispatcher->changed);
    pthread_mutex_destroy(&dispatcher->lock);
    free(dispatcher->job_uid);
    free(dispatcher);
}
