/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/server_exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "worker/comm/shared_area.h"
#include "worker/comm/traffic.h"
#include "worker/parameter_server/bulk.h"
#include "worker/parameter_server/variables_copy.h"

/* A stream from a worker. */
struct exchange {
    struct exchange *next;
    struct server_exchange *all;
    struct rpc_stream *stream;
    unsigned worker;
    uint64_t nonce;
    bool open, answered; /* OPEN was received; OPENED was sent */
    bool shared;
    struct shared_area area;
    struct ps_message push; /* the update whose bytes are arriving; its sets are not owned */
    struct row_set rows;    /* rows of that update */
    bool pushing;
    struct bulk_inbox inbox;
    struct bulk_connection *connection; /* NULL: none was offered, or it ended unused */
    struct variables_copy values;       /* being sent on the bulk connection */
};

struct server_exchange {
    struct server_exchange_options options;
    struct exchange *exchanges;
    uint32_t worker_incarnations[PS_WORKERS_MAX];
    float *outgoing[PS_WORKERS_MAX]; /* values being sent; gRPC may still read them after a stream has ended */
    bool admits, frozen;
    struct ps_server_counts counts;
};

static size_t own_bytes(const struct server_exchange *all)
{
    return (size_t)all->options.variables->elements * sizeof(float);
}

static size_t bytes_of(const struct server_exchange *all, const struct row_set *rows)
{
    const struct variables_options *options = &all->options.variables->options;
    return (size_t)placement_elements_of(options->placement, options->server, rows) * sizeof(float);
}

/* A list from outside. */
static bool knows_rows(const struct exchange *exchange, const struct ps_message *message)
{
    const struct variables_options *options = &exchange->all->options.variables->options;
    if (placement_knows_rows(options->placement, options->server, &message->rows))
        return true;
    rpc_stream_close(exchange->stream);
    return false;
}

/* ---------------------------------------------------------------- what goes out */

static void refuse(struct exchange *exchange, const char *text)
{
    struct ps_message message = {.type = PS_REFUSED};
    snprintf(message.text, sizeof message.text, "%s", text);
    ps_message_send(exchange->stream, &message);
}

/* A peer that follows the protocol never asks for a bulk connection that is busy or was never opened. */
static bool connection_is_ready(const struct exchange *exchange)
{
    return exchange->connection != NULL && bulk_connection_is_ready(exchange->connection);
}

/* All of them need not be copied: those that are updated before they are sent are kept. */
static void send_on_connection(struct exchange *exchange, const struct row_set *rows)
{
    struct server_exchange *all = exchange->all;
    struct variables *variables = all->options.variables;
    const struct variables_options *options = &variables->options;
    float *outgoing = all->outgoing[exchange->worker];
    variables_copy_end(&exchange->values, variables);
    if (rows != NULL && rows->listed) {
        placement_carry(options->placement, options->server, rows, variables->parameters, ORDER_PACKED, outgoing,
                        ORDER_CARRIED);
        bulk_connection_send(exchange->connection, outgoing, bytes_of(all, rows));
    } else if (variables_copy_begin(&exchange->values, variables, VARIABLES_PARAMETERS, NULL) == 0) {
        bulk_connection_send_from(exchange->connection, own_bytes(all), variables_copy_give, &exchange->values);
    } else {
        rpc_stream_close(exchange->stream);
    }
}

/* The values as they are now, by value, so that the next update may come. */
static void send_values(struct exchange *exchange, const struct row_set *rows, bool on_connection)
{
    struct server_exchange *all = exchange->all;
    const struct variables *variables = all->options.variables;
    const struct placement *placement = variables->options.placement;
    unsigned number = variables->options.server;
    struct ps_message message = {.type = PS_VALUES, .updates = variables->updates, .lineage = variables->lineage};
    all->counts.pulls++;
    if (exchange->shared) {
        traffic_count(bytes_of(all, rows));
        placement_carry(placement, number, rows, variables->parameters, ORDER_PACKED, (float *)exchange->area.bytes,
                        ORDER_LAYOUT);
        ps_message_send(exchange->stream, &message);
        return;
    }
    if (on_connection && !connection_is_ready(exchange)) {
        rpc_stream_close(exchange->stream);
        return;
    }
    message.on_connection = on_connection;
    ps_message_send(exchange->stream, &message);
    if (on_connection) {
        send_on_connection(exchange, rows);
        return;
    }
    float *outgoing = all->outgoing[exchange->worker];
    placement_carry(placement, number, rows, variables->parameters, ORDER_PACKED, outgoing, ORDER_CARRIED);
    bulk_send(exchange->stream, outgoing, bytes_of(all, rows));
}

static void acknowledge(struct exchange *exchange, int64_t ticket, uint32_t verdict, bool pull)
{
    ps_message_send(exchange->stream, &(struct ps_message){.type = PS_ACK,
                                                           .ticket = ticket,
                                                           .verdict = verdict,
                                                           .lineage = exchange->all->options.variables->lineage,
                                                           .nonce = exchange->all->options.nonce});
    if (pull)
        send_values(exchange, NULL, exchange->push.on_connection);
}

static void admit(struct exchange *exchange)
{
    const struct server_exchange *all = exchange->all;
    if (!exchange->open || exchange->answered || all->frozen || !all->admits)
        return;
    exchange->answered = true;
    struct ps_message message = {.type = PS_OPENED,
                                 .nonce = all->options.nonce,
                                 .generation = all->options.generation,
                                 .lineage = all->options.variables->lineage,
                                 .shared = exchange->shared,
                                 .holds_state = true};
    if (all->options.connections != NULL && !exchange->shared && exchange->connection == NULL) {
        exchange->connection = bulk_connection_expect(all->options.connections, &message.token);
        message.port = bulk_connections_port(all->options.connections);
    }
    ps_message_send(exchange->stream, &message);
}

void server_exchange_admit(struct server_exchange *all)
{
    all->admits = true;
    for (struct exchange *exchange = all->exchanges; exchange != NULL; exchange = exchange->next)
        admit(exchange);
}

void server_exchange_hold(struct server_exchange *all)
{
    all->admits = false;
}

void server_exchange_close(struct server_exchange *all)
{
    all->admits = false;
    for (struct exchange *exchange = all->exchanges; exchange != NULL; exchange = exchange->next) {
        exchange->answered = exchange->pushing = false;
        rpc_stream_close(exchange->stream);
    }
}

void server_exchange_freeze(struct server_exchange *all)
{
    all->frozen = true;
    server_exchange_close(all);
}

bool server_exchange_is_frozen(const struct server_exchange *all)
{
    return all->frozen;
}

/* ---------------------------------------------------------------- what comes in */

static int64_t area_bytes(const struct server_exchange *all)
{
    const struct placement *placement = all->options.variables->options.placement;
    int64_t elements = 0;
    for (unsigned i = 0; i < placement->server_count; i++)
        elements += placement->elements[i];
    return 2 * ((elements * (int64_t)sizeof(float) + 4095) & ~(int64_t)4095);
}

static void on_open(struct exchange *exchange, const struct ps_message *message)
{
    struct server_exchange *all = exchange->all;
    if (strcmp(message->job_uid, all->options.job_uid) != 0 || message->digest != all->options.digest ||
        message->index >= PS_WORKERS_MAX) {
        refuse(exchange, "another job, or another model, trains here");
        return;
    }
    if (!all->options.accepts(all->options.server, exchange->stream, message))
        return;
    if (message->generation.incarnation < all->worker_incarnations[message->index]) {
        refuse(exchange, "a successor has taken this worker's place");
        return;
    }
    all->worker_incarnations[message->index] = message->generation.incarnation;
    exchange->worker = message->index;
    exchange->nonce = message->nonce;
    /* Values and gradients, each in the layout's order and whole pages. */
    exchange->shared =
        message->path[0] != '\0' && message->bytes == area_bytes(all) &&
        shared_area_open(message->path, message->nonce, (size_t)message->bytes, &exchange->area, NULL) == 0;
    float **outgoing = &all->outgoing[exchange->worker];
    if (!exchange->shared && *outgoing == NULL)
        *outgoing = malloc(own_bytes(all) + 1);
    if (!exchange->shared && *outgoing == NULL) {
        refuse(exchange, "no memory for a worker's values");
        return;
    }
    exchange->open = true;
    admit(exchange);
}

/* The values after an update begin to travel while it is applied. */
static bool hand_over_early(struct exchange *exchange, const struct update *update)
{
    struct server_exchange *all = exchange->all;
    struct variables *variables = all->options.variables;
    if (!exchange->push.pull || !exchange->push.on_connection || update->rows->listed || update_is_empty(update) ||
        variables->options.shares > 0 || variables_judge(variables, update) != UPDATE_APPLIED ||
        !connection_is_ready(exchange))
        return false;
    variables_copy_end(&exchange->values, variables);
    if (variables_copy_expect(&exchange->values, variables, VARIABLES_PARAMETERS, NULL) < 0)
        return false;
    all->counts.pulls++;
    ps_message_send(exchange->stream, &(struct ps_message){.type = PS_VALUES,
                                                           .updates = variables->updates + 1,
                                                           .lineage = variables->lineage,
                                                           .on_connection = true});
    bulk_connection_send_from(exchange->connection, own_bytes(all), variables_copy_give, &exchange->values);
    return true;
}

static void reached(void *context, int64_t end)
{
    struct exchange *exchange = context;
    variables_copy_reach(&exchange->values, end);
    bulk_connection_poke(exchange->connection);
}

static void count(struct server_exchange *all, const struct update *update, enum update_verdict verdict)
{
    bool empty = all->options.variables->options.shares == 0 && update_is_empty(update);
    all->counts.applied += verdict == UPDATE_APPLIED && !empty;
    all->counts.duplicates += verdict == UPDATE_DUPLICATE;
    all->counts.outdated += verdict == UPDATE_OUTDATED;
    all->counts.late += verdict == UPDATE_LATE;
}

/* All of the update is there. */
static void take_update(struct exchange *exchange)
{
    struct server_exchange *all = exchange->all;
    struct variables *variables = all->options.variables;
    struct error error = ERROR_INIT;
    enum update_verdict verdict;
    struct update update = {
        .ticket = exchange->push.ticket,
        .clock = exchange->push.clock,
        .lineage = exchange->push.lineage,
        .learning_rate = exchange->push.rate,
        .gradient_scale = exchange->push.scale,
        .gradients = exchange->shared ? (const float *)(exchange->area.bytes + exchange->area.length / 2)
                                      : (const float *)exchange->inbox.bytes,
        .flat = exchange->shared,
        .rows = &exchange->rows,
        .context = exchange,
    };
    exchange->pushing = false;
    bool handed_over = hand_over_early(exchange, &update);
    update.reached = handed_over ? reached : NULL;
    int result = variables->options.shares > 0 ? variables_stage(variables, &update, &verdict, &error)
                                               : variables_apply(variables, &update, &verdict, &error);
    if (result < 0) {
        all->options.failed(all->options.server, &error);
        return;
    }
    count(all, &update, verdict);
    if (verdict == UPDATE_APPLIED && variables->options.shares == 0)
        all->options.applied(all->options.server, update.ticket);
    acknowledge(exchange, update.ticket, verdict, exchange->push.pull && !handed_over);
}

static void on_push(struct exchange *exchange, const struct ps_message *message)
{
    if (!knows_rows(exchange, message))
        return;
    if (exchange->pushing) { /* its bytes are not all there */
        rpc_stream_close(exchange->stream);
        return;
    }
    exchange->push = *message;
    exchange->push.tickets = (struct ticket_set){0};
    exchange->push.rows = (struct row_set){0};
    row_set_copy(&exchange->rows, &message->rows);
    exchange->pushing = true;
    size_t bytes = bytes_of(exchange->all, &exchange->rows);
    if (exchange->shared || bytes == 0)
        take_update(exchange);
    else if ((message->on_connection && !connection_is_ready(exchange)) ||
             bulk_inbox_expect(&exchange->inbox, bytes, NULL, NULL) < 0)
        rpc_stream_close(exchange->stream);
    else if (message->on_connection)
        bulk_connection_receive(exchange->connection, exchange->inbox.bytes, bytes);
}

/* A bulk connection that ends is the stream's end, unless nothing has used it: the worker may have given up on opening it, and goes on with
 * gRPC alone, when its greeting is answered. */
static void end_connection(struct exchange *exchange)
{
    if (bulk_connection_is_busy(exchange->connection) || bulk_connection_moved(exchange->connection) > 0) {
        rpc_stream_close(exchange->stream);
        return;
    }
    bulk_connection_free(exchange->connection);
    exchange->connection = NULL;
}

/* Handles the end of a load on the bulk connection, and of the bulk connection itself. */
static void tend_connection(struct exchange *exchange)
{
    if (exchange->pushing && exchange->push.on_connection && !bulk_connection_is_busy(exchange->connection))
        take_update(exchange);
    if (!bulk_connection_is_busy(exchange->connection))
        variables_copy_end(&exchange->values, exchange->all->options.variables);
    if (bulk_connection_state(exchange->connection) == BULK_CONNECTION_CLOSED)
        end_connection(exchange);
}

void server_exchange_tick(struct server_exchange *all)
{
    for (struct exchange *exchange = all->exchanges; exchange != NULL; exchange = exchange->next)
        if (exchange->connection != NULL)
            tend_connection(exchange);
}

static void hear(struct exchange *exchange, const struct ps_message *message)
{
    if (message->type == PS_OPEN && !exchange->open)
        on_open(exchange, message);
    else if (message->type == PS_PUSH && exchange->answered)
        on_push(exchange, message);
    else if (message->type == PS_PULL && exchange->answered && knows_rows(exchange, message))
        send_values(exchange, &message->rows, message->on_connection);
}

static void on_pieces(void *context, struct rpc_stream *stream, const struct rpc_piece *pieces, unsigned count)
{
    struct exchange *exchange = context;
    struct ps_message message = {0};
    struct error error = ERROR_INIT;
    bool awaits = exchange->pushing && !exchange->push.on_connection;
    enum bulk_received heard = bulk_receive(pieces, count, awaits ? &exchange->inbox : NULL, &message, &error);
    if (heard == BULK_RECEIVED_NOTHING)
        ps_message_answer_unread(stream, &error);
    else if (heard == BULK_RECEIVED_MESSAGE)
        hear(exchange, &message);
    else if (heard == BULK_RECEIVED_ALL)
        take_update(exchange);
    ps_message_release(&message);
}

static void on_closed(void *context, struct rpc_stream *stream, const struct error *error)
{
    (void)stream, (void)error;
    struct exchange *exchange = context;
    struct server_exchange *all = exchange->all;
    for (struct exchange **place = &all->exchanges; *place != NULL; place = &(*place)->next) {
        if (*place == exchange) {
            *place = exchange->next;
            break;
        }
    }
    bulk_connection_free(exchange->connection);
    variables_copy_end(&exchange->values, all->options.variables);
    variables_copy_release(&exchange->values);
    shared_area_release(&exchange->area);
    bulk_inbox_release(&exchange->inbox);
    row_set_release(&exchange->rows);
    free(exchange);
}

void server_exchange_open(struct server_exchange *all, struct rpc_stream *stream, struct rpc_stream_events *ret_events,
                          void **ret_context)
{
    struct exchange *exchange = memory_allocate(1, sizeof *exchange);
    *exchange = (struct exchange){.next = all->exchanges, .all = all, .stream = stream};
    all->exchanges = exchange;
    *ret_events = (struct rpc_stream_events){.pieces = on_pieces, .closed = on_closed};
    *ret_context = exchange;
}

/* ---------------------------------------------------------------- life cycle */

struct server_exchange *server_exchange_new(const struct server_exchange_options *options)
{
    struct server_exchange *all = memory_allocate(1, sizeof *all);
    all->options = *options;
    return all;
}

void server_exchange_free(struct server_exchange *all)
{
    if (all == NULL)
        return;
    for (unsigned i = 0; i < PS_WORKERS_MAX; i++)
        free(all->outgoing[i]);
    free(all);
}

struct ps_server_counts server_exchange_counts(const struct server_exchange *all)
{
    return all->counts;
}
