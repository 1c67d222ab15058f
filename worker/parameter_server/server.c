/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/server.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/clock.h"
#include "common/lock.h"
#include "common/memory.h"
#include "worker/comm/bulk_connection.h"
#include "worker/comm/rpc.h"
#include "worker/parameter_server/bulk.h"
#include "worker/parameter_server/dispatcher.h"
#include "worker/parameter_server/message.h"
#include "worker/parameter_server/server_exchange.h"
#include "worker/parameter_server/variables_copy.h"
#include "worker/parameter_server/waiting.h"

#define TICK_MS 200
#define LOST_MS_DEFAULT 600000
/* Well within a pod's grace period; long enough for a chief that is about to connect. */
#define LEAVE_MS_DEFAULT 15000
/* Time to wait for a chief if there is nothing to save. */
#define LEAVE_UNLED_MS 2000
/* Time without a chief before workers are disconnected. Usually a chief's successor connects sooner. */
#define SEND_AWAY_MS 5000

/* A stream from the chief. */
struct control {
    struct ps_server *server;
    struct rpc_stream *stream;
    bool claimed;
};

/* Where in the data the tickets of a plan begin (dispatcher_plan). */
struct data_base {
    int64_t step, epoch, consumed;
};

struct store_job {
    struct variables_copy copy;
    char directory[PS_PATH_MAX];
    int64_t step;
    struct ps_message result;
    bool wanted, done, busy;
};

struct ps_server {
    struct ps_server_options options;
    char *job_uid;
    struct rpc *rpc;
    struct rpc_server *listener;
    struct bulk_connections *connections; /* NULL: the values are too small */
    uint64_t nonce;
    struct variables variables;

    /* Used on the rpc's thread only. */
    struct server_exchange *exchange;
    struct control *control;
    struct generation chief; /* the highest generation of a chief that has connected */
    int64_t unled_since_ms;  /* when the chief's connection was lost */
    int64_t sent_away_ms;    /* when all workers were last disconnected, so that they look up the server's name again */
    struct data_base base;   /* reported to the chief's successor */
    double squares;          /* of the gradient last reduced */
    int64_t asked_ms;        /* when the request to leave was seen; 0: none */
    int64_t
        saved_updates; /* updates in the values at the last save that was reported to a chief, or at the start; -1: never saved */
    bool dismissed;            /* the chief has answered the request to leave */
    char waiting[PS_TEXT_MAX]; /* as last reported */

    pthread_t storing;
    bool storing_runs;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    struct store_job store;
    bool over, cancelled, stopping;
    bool leaving; /* asked to leave */
    struct error fatal;
};

/* Calls the witness. `whose` is the last component of `path`; NULL: this server. */
static void record(struct ps_server *server, enum server_fate fate, const struct variables *variables, int64_t number,
                   const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    char own[64];
    snprintf(own, sizeof own, "ps-%u-%u", server->options.variables.server, server->options.generation.incarnation);
    if (server->options.witness)
        server->options.witness(server->options.context, fate, variables->lineage, number,
                                path == NULL ? own
                                : slash      ? slash + 1
                                             : path);
}

/* Makes ps_server_wait fail with `error`, unless it has already failed. */
static void fail(struct ps_server *server, const struct error *error)
{
    SCOPED_LOCK(&server->lock);
    if (server->fatal.kind == ERROR_NONE)
        server->fatal = *error;
    pthread_cond_broadcast(&server->changed);
}

/* ---------------------------------------------------------------- being replaced */

/* Returns whether a message is meant for this server. If not, closes the stream: the newer server that the caller has met
 * is not our successor. The caller looks the name up again. */
static bool is_meant(const struct ps_server *server, struct rpc_stream *stream, const struct ps_message *message)
{
    if (message->server == server->options.variables.server)
        return true;
    rpc_stream_close(stream);
    return false;
}

/* If `newest` is a newer server in this one's place, ends the server with an error that says so, and returns true. */
static bool is_superseded(struct ps_server *server, struct generation newest)
{
    const struct generation own = server->options.generation;
    struct error error = ERROR_INIT;
    if (generation_compare_chiefs(newest, own) <= 0)
        return false;
    error_set(&error, ERROR_STALE,
              "ps %u of attempt %u, incarnation %u, is superseded: its successor of attempt %u, incarnation %u, has "
              "its place in the "
              "crew; nothing is left to do for this process",
              server->options.variables.server, own.attempt, own.incarnation, newest.attempt, newest.incarnation);
    server_exchange_freeze(server->exchange);
    fail(server, &error);
    return true;
}

/* Returns whether the peer that sends this message may go on with this server. A newer attempt of the job supersedes all
 * processes of this attempt. */
static bool accepts(struct ps_server *server, struct rpc_stream *stream, const struct ps_message *message)
{
    return is_meant(server, stream, message) && !is_superseded(server, message->newest) &&
           !is_superseded(server, (struct generation){.attempt = message->generation.attempt});
}

/* Disconnects the workers if no chief is connected: the chief may be connected to our successor.
 * The workers look up where our name leads now, and wait there. */
static void succession_tick(struct ps_server *server)
{
    int64_t now_ms = clock_monotonic_ms();
    if (server->control != NULL || now_ms - server->unled_since_ms < SEND_AWAY_MS ||
        now_ms - server->sent_away_ms < SEND_AWAY_MS)
        return;
    server->sent_away_ms = now_ms;
    server_exchange_close(server->exchange);
}

/* ---------------------------------------------------------------- this server's shard of a checkpoint */

static void write_copy(struct ps_server *server)
{
    struct store_job *job = &server->store;
    struct error error = ERROR_INIT;
    char name[64] = "";
    struct ps_message *result = &job->result;
    const struct variables *values = &job->copy.values;
    variables_copy_complete(&job->copy);
    *result = (struct ps_message){.type = PS_SAVED,
                                  .step = job->step,
                                  .updates = values->updates,
                                  .empty = values->empty,
                                  .tickets = values->applied};
    if (server->options.store(server->options.context, job->directory, values, name, &result->bytes, &result->crc,
                              &error) < 0) {
        snprintf(result->text, sizeof result->text, "%.250s", error.message);
        result->verdict = (uint32_t)error.os_error;
    }
    snprintf(result->path, sizeof result->path, "%s", name);
}

static void *run_store(void *context)
{
    struct ps_server *server = context;
    pthread_mutex_lock(&server->lock);
    while (!server->stopping) {
        if (!server->store.wanted) {
            pthread_cond_wait(&server->changed, &server->lock);
            continue;
        }
        server->store.wanted = false;
        pthread_mutex_unlock(&server->lock);
        write_copy(server);
        pthread_mutex_lock(&server->lock);
        server->store.done = true;
        rpc_wake(server->rpc);
    }
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

static int store_start(struct ps_server *server, struct error *error)
{
    errno = pthread_create(&server->storing, NULL, run_store, server);
    if (errno != 0)
        return error_set_errno(error, "cannot start the thread that writes checkpoints");
    server->storing_runs = true;
    return 0;
}

static void store_stop(struct ps_server *server)
{
    if (!server->storing_runs)
        return;
    pthread_mutex_lock(&server->lock);
    server->stopping = true;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
    pthread_join(server->storing, NULL);
    variables_copy_release(&server->store.copy);
}

/* Starts to write a copy of the present state while updates continue. Returns false if that is
 * impossible; the chief was then told why. */
static bool store_begin(struct ps_server *server, const struct ps_message *order)
{
    struct store_job *job = &server->store;
    struct ps_message refusal = {.type = PS_SAVED, .step = order->step};
    struct error error = ERROR_INIT;
    if (job->busy) {
        snprintf(refusal.text, sizeof refusal.text, "the checkpoint before is still being written");
        refusal.verdict = PS_SAVE_WAITS;
    } else if (variables_copy_begin(&job->copy, &server->variables, VARIABLES_WITH_SLOTS, &error) < 0) {
        snprintf(refusal.text, sizeof refusal.text, "%.250s", error.message);
    }
    if (refusal.text[0]) {
        ps_message_send(server->control->stream, &refusal);
        return false;
    }
    record(server, SERVER_SAVED, &server->variables, order->step, order->path);
    job->step = order->step;
    snprintf(job->directory, sizeof job->directory, "%s", order->path);
    job->busy = true;
    SCOPED_LOCK(&server->lock);
    job->wanted = true;
    pthread_cond_broadcast(&server->changed);
    return true;
}

static void store_tick(struct ps_server *server)
{
    struct store_job *job = &server->store;
    pthread_mutex_lock(&server->lock);
    bool done = job->done;
    job->done = false;
    pthread_mutex_unlock(&server->lock);
    if (!done)
        return;
    variables_copy_end(&job->copy, &server->variables);
    job->busy = false;
    if (server->control == NULL)
        return; /* no chief is connected that could add the shard to a checkpoint */
    if (!job->result.text[0])
        server->saved_updates = job->result.updates;
    ps_message_send(server->control->stream, &job->result);
}

/* ---------------------------------------------------------------- leaving on request */

void ps_server_leave(struct ps_server *server)
{
    pthread_mutex_lock(&server->lock);
    server->leaving = true;
    pthread_mutex_unlock(&server->lock);
    rpc_wake(server->rpc);
}

/* Longer while this server writes a shard: leaving then would fail the save of all servers. */
static int64_t leave_ms(const struct ps_server *server)
{
    int64_t ms = server->options.leave_ms > 0 ? server->options.leave_ms : LEAVE_MS_DEFAULT;
    return server->store.busy ? ms + ms / 2 : ms;
}

static bool is_asked(struct ps_server *server)
{
    SCOPED_LOCK(&server->lock);
    bool leaving = server->leaving;
    return leaving;
}

/* Stops acknowledging: what is acknowledged from here on would be lost with this process a moment
 * later. This also holds while it loads its first state. */
static void go(struct ps_server *server)
{
    server_exchange_freeze(server->exchange);
    ps_server_cancel(server);
}

/* Stops acknowledging if the server is leaving, because its last save has begun; workers wait for the successor. */
static void freeze_if_leaving(struct ps_server *server)
{
    if (server->asked_ms != 0 && !server_exchange_is_frozen(server->exchange))
        server_exchange_freeze(server->exchange);
}

/* Informs the present chief that this server was asked to leave, since it may be a new one. */
static void tell_leaving(struct ps_server *server)
{
    if (server->asked_ms != 0 && !server->dismissed && server->control != NULL)
        ps_message_send(server->control->stream, &(struct ps_message){.type = PS_LEAVING});
}

static void begin_leaving(struct ps_server *server, int64_t now_ms)
{
    server->asked_ms = now_ms;
    if (server->variables.holds_state)
        tell_leaving(server);
    else
        go(server);
}

static bool needs_no_save(const struct ps_server *server)
{
    return server->variables.updates == server->saved_updates || server->options.never_saved;
}

static void leaving_tick(struct ps_server *server)
{
    int64_t now_ms = clock_monotonic_ms();
    if (!is_asked(server))
        return;
    if (server->asked_ms == 0)
        begin_leaving(server, now_ms);
    bool unled = server->control == NULL && needs_no_save(server) && now_ms - server->unled_since_ms > LEAVE_UNLED_MS;
    if (unled || server->dismissed || now_ms - server->asked_ms > leave_ms(server))
        go(server);
}

/* ---------------------------------------------------------------- the chief */

static struct data_base data_base_of(const struct ps_message *message)
{
    return (struct data_base){message->base_step, message->base_epoch, message->base_consumed};
}

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
    if (strcmp(message->job_uid, server->job_uid) == 0 && is_meant(server, control->stream, message) &&
        !is_superseded(server, message->newest))
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
    if (!accepts(server, control->stream, message))
        return;
    if (server->control != NULL && server->control != control)
        rpc_stream_close(server->control->stream);
    control->claimed = true;
    server->control = control;
    server_exchange_hold(server->exchange);
    server->chief = message->generation;
    say_standing(server, false);
    tell_leaving(server);
}

static void on_start(struct ps_server *server, const struct ps_message *message)
{
    struct variables *variables = &server->variables;
    struct error error = ERROR_INIT;
    variables_keep(variables, 0, variables->elements);
    if (server->options.load(server->options.context, message->path, variables, &error) < 0) {
        fail(server, &error);
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
    record(server, SERVER_LOADED, variables, message->updates, message->path[0] ? message->path : "-");
    say_standing(server, true);
}

static void on_reduce(struct ps_server *server, const struct ps_message *message)
{
    struct error error = ERROR_INIT;
    struct ps_message answer = {.type = PS_REDUCED, .step = message->step};
    answer.squares = server->squares; /* asked again by a chief that missed the answer */
    if (server->variables.updates == message->step &&
        variables_reduce(&server->variables, &answer.squares, &error) < 0) {
        fail(server, &error);
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
        fail(server, &error);
        return;
    }
    if (server->variables.updates != before)
        record(server, SERVER_APPLIED, &server->variables, message->step, NULL);
    say(server, &(struct ps_message){.type = PS_STEPPED, .step = message->step});
}

static void on_save(struct ps_server *server, const struct ps_message *message)
{
    if (!store_begin(server, message))
        return;
    freeze_if_leaving(server);
    /* Otherwise updates acknowledged from here on would be lost if we are asked to leave a moment
     * later. */
    if (message->last)
        server_exchange_close(server->exchange);
}

static void on_admit(struct ps_server *server, const struct ps_message *message)
{
    (void)message;
    server_exchange_admit(server->exchange);
}

/* Reports the result to the chief: another worker may have sent one of these tickets again, which
 * is then not lost. */
static void on_discard_tickets(struct ps_server *server, const struct ps_message *message)
{
    variables_discard_tickets(&server->variables, &message->tickets, message->empty != 0);
    say_standing(server, false);
}

/* The chief's answer to the request to leave: all servers are saved (`holds_state`), or they cannot be saved. */
static void on_leaving(struct ps_server *server, const struct ps_message *message)
{
    if (server->asked_ms == 0)
        return;
    server->dismissed = true;
    if (message->holds_state)
        go(server);
}

static void on_finish(struct ps_server *server, const struct ps_message *message)
{
    (void)message;
    SCOPED_LOCK(&server->lock);
    server->over = true;
    pthread_cond_broadcast(&server->changed);
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
        server_exchange_hold(control->server->exchange);
        control->server->unled_since_ms = clock_monotonic_ms();
    }
    free(control);
}

static void control_opened(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events,
                           void **ret_context)
{
    struct control *control = memory_allocate(1, sizeof *control);
    *control = (struct control){.server = context, .stream = stream};
    *ret_events = (struct rpc_stream_events){.message = on_message, .closed = on_closed};
    *ret_context = control;
}

static void control_tick(struct ps_server *server)
{
    int64_t lost_ms = server->options.lost_ms > 0 ? server->options.lost_ms : LOST_MS_DEFAULT;
    if (server->control != NULL || clock_monotonic_ms() - server->unled_since_ms < lost_ms)
        return;
    struct error error = ERROR_INIT;
    error_set(&error, ERROR_TIMEOUT,
              "the crew is lost: no chief has come for %lld s; start the chief, then this process again",
              (long long)(lost_ms / 1000));
    fail(server, &error);
}

/* ---------------------------------------------------------------- life cycle */

static void tell_waits(struct ps_server *server)
{
    char text[PS_TEXT_MAX] = "";
    if (server->control == NULL &&
        clock_monotonic_ms() - server->unled_since_ms >= waiting_patience_ms(server->options.patience_ms, false))
        snprintf(text, sizeof text, "waiting for the chief");
    if (strcmp(text, server->waiting) == 0)
        return;
    snprintf(server->waiting, sizeof server->waiting, "%s", text);
    if (server->options.waits)
        server->options.waits(server->options.context, text);
}

static void tick(void *context)
{
    struct ps_server *server = context;
    server_exchange_tick(server->exchange);
    control_tick(server);
    succession_tick(server);
    store_tick(server);
    leaving_tick(server);
    tell_waits(server);
}

static void exchange_opened(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events,
                            void **ret_context)
{
    server_exchange_open(((struct ps_server *)context)->exchange, stream, ret_events, ret_context);
}

static const struct rpc_method methods[] = {
    {PS_METHOD_EXCHANGE, exchange_opened},
    {PS_METHOD_CONTROL, control_opened},
};

static void wake(void *context)
{
    rpc_wake(((struct ps_server *)context)->rpc);
}

static int open_connections(struct ps_server *server, struct error *error)
{
    const struct bulk_connections_options options = {.job_uid = server->job_uid,
                                                     .listens = true,
                                                     .listen_address = server->options.listen_address,
                                                     .port = server->options.data_port,
                                                     .wake = wake,
                                                     .context = server};
    bool is_large = (size_t)server->variables.elements * sizeof(float) >= BULK_CONNECTION_LOAD_MIN;
    return is_large ? bulk_connections_start(&options, &server->connections, error) : 0;
}

static void record_applied(struct ps_server *server, int64_t ticket)
{
    record(server, SERVER_APPLIED, &server->variables, ticket, NULL);
}

static void make_exchange(struct ps_server *server)
{
    const struct server_exchange_options options = {.job_uid = server->job_uid,
                                                    .generation = server->options.generation,
                                                    .digest = server->options.digest,
                                                    .nonce = server->nonce,
                                                    .variables = &server->variables,
                                                    .connections = server->connections,
                                                    .accepts = accepts,
                                                    .applied = record_applied,
                                                    .failed = fail,
                                                    .server = server};
    server->exchange = server_exchange_new(&options);
}

static int open_door(struct ps_server *server, struct error *error)
{
    const struct ps_server_options *options = &server->options;
    if (variables_init(&server->variables, &options->variables, error) < 0 ||
        rpc_new(tick, server, TICK_MS, &server->rpc, error) < 0 || store_start(server, error) < 0 ||
        open_connections(server, error) < 0)
        return -1;
    make_exchange(server);
    if (rpc_server_start(server->rpc, options->listen_address, options->port, methods, sizeof methods / sizeof *methods,
                         server, &server->listener, error) < 0)
        return -1;
    rpc_start_ticks(server->rpc);
    return 0;
}

int ps_server_start(const struct ps_server_options *options, struct ps_server **ret_server, struct error *error)
{
    struct ps_server *server = memory_allocate(1, sizeof *server);
    server->options = *options;
    server->job_uid = memory_copy_string(options->job_uid);
    server->chief.attempt = options->generation.attempt;
    server->unled_since_ms = clock_monotonic_ms();
    server->saved_updates = -1;
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->changed, NULL);
    if (getrandom(&server->nonce, sizeof server->nonce, 0) < 0)
        server->nonce = (uint64_t)clock_monotonic_ns();
    if (open_door(server, error) < 0) {
        ps_server_free(server);
        return -1;
    }
    *ret_server = server;
    return 0;
}

uint16_t ps_server_port(const struct ps_server *server)
{
    return rpc_server_port(server->listener);
}

int ps_server_wait(struct ps_server *server, struct error *error)
{
    int result = 0;
    SCOPED_LOCK(&server->lock);
    while (!server->over && !server->cancelled && server->fatal.kind == ERROR_NONE)
        pthread_cond_wait(&server->changed, &server->lock);
    if (server->fatal.kind != ERROR_NONE)
        result = error_set(error, server->fatal.kind, "%s", server->fatal.message);
    else if (!server->over)
        result = error_set(error, ERROR_CANCELLED, "this ps has left on request; the crew waits for its replacement");
    return result;
}

void ps_server_cancel(struct ps_server *server)
{
    SCOPED_LOCK(&server->lock);
    server->cancelled = true;
    pthread_cond_broadcast(&server->changed);
}

void ps_server_free(struct ps_server *server)
{
    if (server == NULL)
        return;
    if (server->rpc)
        rpc_stop(server->rpc);
    store_stop(server);
    bulk_connections_free(server->connections);
    if (server->rpc)
        rpc_free(server->rpc);
    server_exchange_free(server->exchange);
    variables_release(&server->variables);
    pthread_cond_destroy(&server->changed);
    pthread_mutex_destroy(&server->lock);
    free(server->job_uid);
    free(server);
}

struct ps_server_counts ps_server_counts(struct ps_server *server)
{
    return server_exchange_counts(server->exchange);
}
