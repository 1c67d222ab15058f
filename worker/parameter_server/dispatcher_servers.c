/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/lock.h"
#include "worker/optimizer/gradient_norm.h"
#include "worker/parameter_server/dispatcher_parts.h"

#define REDIAL_MS 100
#define PROMPT_MS 1000

bool dispatcher_all_stand(const struct dispatcher *dispatcher)
{
    for (unsigned i = 0; i < dispatcher->options.server_count; i++)
        if (!dispatcher->servers[i].stands)
            return false;
    return true;
}

void dispatcher_order(struct dispatcher *dispatcher, const struct ps_message *order)
{
    for (unsigned i = 0; i < dispatcher->options.server_count; i++)
        if (dispatcher->servers[i].stream != NULL)
            ps_message_send(dispatcher->servers[i].stream, order);
}

/* ---------------------------------------------------------------- a synchronous step */

static void mark_asked(struct dispatcher *dispatcher)
{
    for (unsigned i = 0; i < dispatcher->options.server_count; i++)
        dispatcher->servers[i].asked_ms = dispatcher_now_ms();
}

void dispatcher_reduce(struct dispatcher *dispatcher)
{
    dispatcher->phase = PHASE_REDUCING;
    for (unsigned i = 0; i < dispatcher->options.server_count; i++)
        dispatcher->servers[i].reduced = dispatcher->servers[i].stepped = false;
    mark_asked(dispatcher);
    dispatcher_order(dispatcher,
                     &(struct ps_message){.type = PS_REDUCE, .step = ticket_scheduler_step(dispatcher->scheduler)});
}

static double crew_norm(const struct dispatcher *dispatcher)
{
    double squares = 0;
    for (unsigned i = 0; i < dispatcher->options.server_count; i++)
        squares += dispatcher->servers[i].squares;
    return sqrt(squares);
}

static void apply(struct dispatcher *dispatcher)
{
    int64_t step = ticket_scheduler_step(dispatcher->scheduler);
    double norm = crew_norm(dispatcher), limit = dispatcher->options.gradient_clip_norm;
    if (!isfinite(norm)) {
        char text[PS_TEXT_MAX];
        snprintf(text, sizeof text, "the gradient norm of step %lld is %g; lower training.optimizer.learningRate",
                 (long long)step + 1, fabs(norm)); /* nan, not -nan */
        dispatcher_fail(dispatcher, ERROR_NOT_FINITE, text);
        return;
    }
    dispatcher->phase = PHASE_APPLYING;
    mark_asked(dispatcher);
    dispatcher_order(dispatcher,
                     &(struct ps_message){.type = PS_APPLY,
                                          .step = step,
                                          .rate = dispatcher->options.rate(dispatcher->options.context, step + 1),
                                          .scale = limit > 0 ? gradient_clip_factor(norm, limit) : 1.0});
}

static void on_reduced(struct led_server *server, const struct ps_message *message)
{
    struct dispatcher *dispatcher = server->dispatcher;
    if (dispatcher->phase != PHASE_REDUCING || message->step != ticket_scheduler_step(dispatcher->scheduler))
        return;
    server->reduced = true;
    server->squares = message->squares;
    for (unsigned i = 0; i < dispatcher->options.server_count; i++)
        if (!dispatcher->servers[i].reduced)
            return;
    apply(dispatcher);
}

static void on_stepped(struct led_server *server, const struct ps_message *message)
{
    struct dispatcher *dispatcher = server->dispatcher;
    if (dispatcher->phase != PHASE_APPLYING || message->step != ticket_scheduler_step(dispatcher->scheduler))
        return;
    server->stepped = true;
    for (unsigned i = 0; i < dispatcher->options.server_count; i++)
        if (!dispatcher->servers[i].stepped)
            return;
    dispatcher->phase = PHASE_OPEN;
    ticket_scheduler_advance(dispatcher->scheduler);
    dispatcher_step_done(dispatcher, message->step + 1, crew_norm(dispatcher));
    dispatcher_deal(dispatcher);
}

void dispatcher_resume_step(struct dispatcher *dispatcher)
{
    if (dispatcher->options.scheduler.mode == PARAMETER_SERVER_SYNCHRONOUS &&
        ticket_scheduler_step_is_complete(dispatcher->scheduler))
        dispatcher_reduce(dispatcher);
}

/* ---------------------------------------------------------------- what servers say */

void dispatcher_discard_tickets(struct led_server *server, const struct ticket_set *tickets, bool are_empty)
{
    if (server->stream != NULL)
        ps_message_send(server->stream,
                        &(struct ps_message){.type = PS_DISCARD_TICKETS, .tickets = *tickets, .empty = are_empty});
}

/* Counts the tickets that a server has as settled but its values lack. The server may not have received the last DISCARD_TICKETS yet. */
static void count_losses(struct led_server *server)
{
    const struct server_standing *standing = &server->standing;
    const struct ticket_set *settled = &standing->tickets;
    if (!standing->holds_state || server->dispatcher->options.scheduler.mode == PARAMETER_SERVER_SYNCHRONOUS)
        return;
    int64_t unheard = ticket_set_count_missing(&server->lost, settled);
    server->updates_lost = settled->low + settled->above_count + unheard - standing->updates - standing->empty;
    if (unheard > 0)
        dispatcher_discard_tickets(server, &server->lost, false);
    if (ticket_set_count_missing(&server->hollow, settled) > 0)
        dispatcher_discard_tickets(server, &server->hollow, true);
}

static void on_standing(struct led_server *server, const struct ps_message *message)
{
    struct ticket_set tickets = server->standing.tickets;
    ticket_set_copy(&tickets, &message->tickets);
    server->standing = (struct server_standing){.nonce = message->nonce,
                                                .holds_state = message->holds_state,
                                                .lineage = message->lineage,
                                                .clock = message->clock,
                                                .updates = message->updates,
                                                .empty = message->empty,
                                                .base_step = message->base_step,
                                                .base_epoch = message->base_epoch,
                                                .base_consumed = message->base_consumed,
                                                .tickets = tickets};
    server_watch_meet(&server->watch, message->generation);
    server->stands = true;
    server->starting &= !message->pull;
    count_losses(server);
}

static void on_saved(struct led_server *server, const struct ps_message *message)
{
    server->busy = message->verdict == PS_SAVE_WAITS;
    if (!server->saving || message->step != server->save_number)
        return;
    struct ticket_set tickets = server->save.tickets;
    ticket_set_copy(&tickets, &message->tickets);
    server->save = *message;
    server->save.tickets = tickets;
    server->saving = false;
    server->saved = true;
}

static void on_leaving(struct led_server *server)
{
    struct dispatcher_event event = {.kind = EVENT_SERVER_LEAVING};
    server->leaving = true;
    snprintf(event.text, sizeof event.text, "ps %u was asked to leave", server->number);
    dispatcher_tell(server->dispatcher, &event);
}

static void hear(struct led_server *server, const struct ps_message *message)
{
    server->heard_ms = dispatcher_now_ms();
    if (message->type == PS_SERVER_STATE)
        on_standing(server, message);
    else if (message->type == PS_REDUCED)
        on_reduced(server, message);
    else if (message->type == PS_STEPPED)
        on_stepped(server, message);
    else if (message->type == PS_SAVED)
        on_saved(server, message);
    else if (message->type == PS_LEAVING)
        on_leaving(server);
    else if (message->type == PS_REFUSED)
        dispatcher_fail(server->dispatcher, ERROR_STALE, message->text);
    pthread_cond_broadcast(&server->dispatcher->changed);
}

/* No successor of it will do, either, unless it is of another image. */
static void fail_stranger(struct led_server *server, const struct error *cause)
{
    struct dispatcher *dispatcher = server->dispatcher;
    char name[WAITING_NAME_MAX], text[WAITING_NAME_MAX + ERROR_MESSAGE_MAX + 2];
    SCOPED_LOCK(&dispatcher->lock);
    dispatcher_name_server(dispatcher, server->number, name);
    snprintf(text, sizeof text, "%s: %s", name, cause->message);
    dispatcher_fail(dispatcher, ERROR_FORBIDDEN, text);
    pthread_cond_broadcast(&dispatcher->changed);
}

static void on_message(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    struct led_server *server = context;
    struct ps_message message;
    struct error error = ERROR_INIT;
    if (ps_message_decode(bytes, length, &message, &error) < 0) {
        if (error.kind == ERROR_UNSUPPORTED)
            fail_stranger(server, &error);
        rpc_stream_close(stream);
        return;
    }
    pthread_mutex_lock(&server->dispatcher->lock);
    hear(server, &message);
    pthread_mutex_unlock(&server->dispatcher->lock);
    ps_message_release(&message);
}

static void on_closed(void *context, struct rpc_stream *stream, const struct error *error)
{
    (void)stream, (void)error;
    struct led_server *server = context;
    struct dispatcher *dispatcher = server->dispatcher;
    SCOPED_LOCK(&dispatcher->lock);
    bool stood = server->stands;
    server->stream = NULL;
    server->asked_ms = stood ? dispatcher_now_ms() : server->asked_ms; /* not with each vain try */
    server->stands = server->saving = server->busy = server->starting = server->leaving = false;
    if (stood && !dispatcher->finished) {
        struct dispatcher_event event = {.kind = EVENT_SERVER_LOST};
        char name[WAITING_NAME_MAX];
        dispatcher_name_server(dispatcher, server->number, name);
        snprintf(event.text, sizeof event.text, "%s is lost", name);
        dispatcher_tell(dispatcher, &event);
    }
    pthread_cond_broadcast(&dispatcher->changed);
}

/* ---------------------------------------------------------------- dialling */

static void claim(struct led_server *server)
{
    struct ps_message message = {.type = PS_CLAIM,
                                 .generation = server->dispatcher->options.generation,
                                 .server = server->number,
                                 .digest = server->dispatcher->options.digest,
                                 .newest = server->watch.met};
    snprintf(message.job_uid, sizeof message.job_uid, "%s", server->dispatcher->job_uid);
    ps_message_send(server->stream, &message);
}

/* Whether it is the server that does not answer, or only its disk, nothing else tells. */
static void prompt(struct led_server *server)
{
    if (!dispatcher_awaits_disk(server) || dispatcher_now_ms() - server->prompted_ms < PROMPT_MS)
        return;
    server->prompted_ms = dispatcher_now_ms();
    struct ps_message message = {.type = PS_LOOK, .server = server->number, .newest = server->watch.met};
    snprintf(message.job_uid, sizeof message.job_uid, "%s", server->dispatcher->job_uid);
    ps_message_send(server->stream, &message);
}

static void dial(struct led_server *server)
{
    static const struct rpc_stream_events events = {.message = on_message, .closed = on_closed};
    struct dispatcher *dispatcher = server->dispatcher;
    char address[RESOLVE_ADDRESS_MAX];
    if (dispatcher_now_ms() < server->next_dial_ms || !address_book_ask(dispatcher->book, server->number, address))
        return;
    server->next_dial_ms = dispatcher_now_ms() + REDIAL_MS;
    if (rpc_stream_open(dispatcher->rpc, address, dispatcher->options.servers[server->number].port, PS_METHOD_CONTROL,
                        0, &events, server, &server->stream, NULL) < 0)
        return;
    server_watch_begin(&server->watch, address);
    claim(server);
}

/* It stood still, and another has its place: goes on with that one, as if this one had died. */
static void leave(void *context)
{
    struct led_server *server = context;
    struct dispatcher *dispatcher = server->dispatcher;
    char name[WAITING_NAME_MAX];
    SCOPED_LOCK(&dispatcher->lock);
    dispatcher_name_server(dispatcher, server->number, name);
    dispatcher_say(dispatcher, "%s is another process now; the one before it is superseded", name);
    if (server->stream != NULL)
        rpc_stream_close(server->stream);
}

void dispatcher_servers_init(struct dispatcher *dispatcher)
{
    const struct dispatcher_options *options = &dispatcher->options;
    for (unsigned i = 0; i < options->server_count; i++)
        server_watch_init(&dispatcher->servers[i].watch,
                          &(struct server_watch_options){.rpc = dispatcher->rpc,
                                                         .book = dispatcher->book,
                                                         .number = i,
                                                         .seat = &options->servers[i],
                                                         .job_uid = dispatcher->job_uid,
                                                         .every_ms = options->look_ms,
                                                         .found = leave,
                                                         .context = &dispatcher->servers[i]});
}

void dispatcher_servers_tick(struct dispatcher *dispatcher)
{
    for (unsigned i = 0; i < dispatcher->options.server_count && !dispatcher->finished; i++) {
        struct led_server *server = &dispatcher->servers[i];
        if (server->stream == NULL)
            dial(server);
        else {
            server_watch_tick(&server->watch);
            prompt(server);
        }
    }
}
