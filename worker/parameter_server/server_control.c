/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/memory.h"
#include "worker/parameter_server/dispatcher.h"
#include "worker/parameter_server/server_parts.h"

#define LOST_MS_DEFAULT 600000

static void say(struct ps_server *server, const struct ps_message *message)
{
    if (server->control != NULL)
        ps_message_send(server->control->stream, message);
}

static void say_standing(struct ps_server *server, bool answers)
{
    const struct variables *variables = &server->variables;
    say(server, &(struct ps_message){.type = PS_SERVER_STATE,
                                     .nonce = server->nonce,
                                     .generation = server->options.generation,
                                     .holds_state = variables->holds_state,
                                     .pull = answers,
                                     .lineage = variables->lineage,
                                     .clock = variables->clock,
                                     .updates = variables->updates,
                                     .empty = variables->empty,
                                     .base_step = server->base.step,
                                     .base_epoch = server->base.epoch,
                                     .base_consumed = server->base.consumed,
                                     .tickets = variables->applied});
}

/* The peer may have met our successor. */
static void on_look(struct ps_server *server, const struct control *control, const struct ps_message *message)
{
    if (strcmp(message->job_uid, server->job_uid) == 0 && server_is_meant(server, control->stream, message) &&
        !server_is_superseded(server, message->newest))
        ps_message_send(control->stream,
                        &(struct ps_message){.type = PS_SEEN, .generation = server->options.generation});
}

/* ---------------------------------------------------------------- orders */

static void on_claim(struct ps_server *server, struct control *control, const struct ps_message *message)
{
    struct ps_message refusal = {.type = PS_REFUSED};
    if (strcmp(message->job_uid, server->job_uid) != 0 || message->digest != server->options.digest)
        snprintf(refusal.text, sizeof refusal.text, "this ps belongs to another job or has another model");
    else if (generation_compare_chiefs(message->generation, server->chief) < 0)
        snprintf(refusal.text, sizeof refusal.text, "a newer chief leads this crew");
    if (refusal.text[0]) {
        ps_message_send(control->stream, &refusal);
        return;
    }
    if (!server_is_meant(server, control->stream, message) || server_is_superseded(server, message->newest) ||
        server_is_of_a_past_attempt(server, message->generation))
        return;
    if (server->control != NULL && server->control != control)
        rpc_stream_close(server->control->stream);
    control->claimed = true;
    server->control = control;
    server->admits = false;
    server->chief = message->generation;
    say_standing(server, false);
    server_leaving_tell(server);
}

static void on_start(struct ps_server *server, const struct ps_message *message)
{
    struct variables *variables = &server->variables;
    struct error error = ERROR_INIT;
    variables_keep(variables, 0, variables->elements);
    if (server->options.load(server->options.context, message->path, variables, &error) < 0) {
        ps_server_fail(server, &error);
        return;
    }
    ticket_set_copy(&variables->applied, &message->tickets);
    variables->updates = message->updates;
    variables->empty = message->empty;
    variables->lineage = message->lineage;
    variables->clock = message->clock;
    server->base = data_base_of(message);
    variables->holds_state = true;
    server->saved_updates = variables->updates;
    ps_server_record(server, SERVER_LOADED, variables, message->updates, message->path[0] ? message->path : "-");
    say_standing(server, true);
}

static void on_reduce(struct ps_server *server, const struct ps_message *message)
{
    struct error error = ERROR_INIT;
    struct ps_message answer = {.type = PS_REDUCED, .step = message->step};
    answer.squares = server->squares; /* asked again by a chief that missed the answer */
    if (server->variables.updates == message->step &&
        variables_reduce(&server->variables, &answer.squares, &error) < 0) {
        ps_server_fail(server, &error);
        return;
    }
    server->squares = answer.squares;
    say(server, &answer);
}

static void on_apply(struct ps_server *server, const struct ps_message *message)
{
    struct error error = ERROR_INIT;
    int64_t before = server->variables.updates;
    if (variables_apply_step(&server->variables, message->step, message->rate, message->scale, &error) < 0) {
        ps_server_fail(server, &error);
        return;
    }
    if (server->variables.updates != before)
        ps_server_record(server, SERVER_APPLIED, &server->variables, message->step, NULL);
    say(server, &(struct ps_message){.type = PS_STEPPED, .step = message->step});
}

static void on_save(struct ps_server *server, const struct ps_message *message)
{
    if (!server_store_begin(server, message))
        return;
    server_leaving_freeze(server);
    /* Otherwise updates acknowledged from here on would be lost if we are asked to leave a moment
     * later. */
    if (message->last)
        server_exchange_close(server);
}

static void on_admit(struct ps_server *server, const struct ps_message *message)
{
    (void)message;
    server->admits = true;
    server_exchange_admit(server);
}

/* Reports the result to the chief: another worker may have sent one of these tickets again, which
 * is then not lost. */
static void on_discard_tickets(struct ps_server *server, const struct ps_message *message)
{
    variables_discard_tickets(&server->variables, &message->tickets, message->empty != 0);
    say_standing(server, false);
}

static void on_leaving(struct ps_server *server, const struct ps_message *message)
{
    server_leaving_done(server, message->holds_state);
}

static void on_finish(struct ps_server *server, const struct ps_message *message)
{
    (void)message;
    pthread_mutex_lock(&server->lock);
    server->over = true;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

static const struct {
    enum ps_message_type type;
    void (*obey)(struct ps_server *server, const struct ps_message *message);
    bool needs_state;
} orders[] = {
    {PS_START, on_start, false},
    {PS_REDUCE, on_reduce, true},
    {PS_APPLY, on_apply, true},
    {PS_SAVE, on_save, true},
    {PS_DISCARD_TICKETS, on_discard_tickets, true},
    {PS_FINISH, on_finish, false},
    {PS_LEAVING, on_leaving, false},
    {PS_ADMIT, on_admit, true},
};

static void hear(struct control *control, const struct ps_message *message)
{
    struct ps_server *server = control->server;
    if (message->type == PS_CLAIM)
        on_claim(server, control, message);
    if (message->type == PS_LOOK)
        on_look(server, control, message);
    if (server->control != control)
        return;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        if (orders[i].type == message->type && (server->variables.holds_state || !orders[i].needs_state))
            orders[i].obey(server, message);
}

/* ---------------------------------------------------------------- the stream */

static void on_message(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    struct ps_message message;
    struct error error = ERROR_INIT;
    if (ps_message_decode(bytes, length, &message, &error) < 0) {
        ps_message_answer_unread(stream, &error);
        return;
    }
    hear(context, &message);
    ps_message_release(&message);
}

static void on_closed(void *context, struct rpc_stream *stream, const struct error *error)
{
    (void)stream, (void)error;
    struct control *control = context;
    if (control->server->control == control) {
        control->server->control = NULL;
        control->server->admits = false;
        control->server->unled_since_ms = clock_monotonic_ms();
    }
    free(control);
}

void server_control_opened(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events,
                           void **ret_context)
{
    struct control *control = memory_allocate(1, sizeof *control);
    *control = (struct control){.server = context, .stream = stream};
    *ret_events = (struct rpc_stream_events){.message = on_message, .closed = on_closed};
    *ret_context = control;
}

void server_control_tick(struct ps_server *server)
{
    int64_t lost_ms = server->options.lost_ms > 0 ? server->options.lost_ms : LOST_MS_DEFAULT;
    if (server->control != NULL || clock_monotonic_ms() - server->unled_since_ms < lost_ms)
        return;
    struct error error = ERROR_INIT;
    error_set(&error, ERROR_TIMEOUT,
              "the crew is lost: no chief has come for %lld s; start the chief, then this process again",
              (long long)(lost_ms / 1000));
    ps_server_fail(server, &error);
}
