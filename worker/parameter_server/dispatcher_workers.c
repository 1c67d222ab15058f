/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "worker/parameter_server/dispatcher_parts.h"

#define BEAT_MS 500
#define DEATH_MS_DEFAULT 5000
/* A worker that has lost its connection, or its chief, dials ten times in this. */
#define RETURN_MS 1000
#define WANTS_MAX 2

/* ---------------------------------------------------------------- tickets */

static void welcome(struct ticket_desk *desk, enum ps_message_type type)
{
    const struct dispatcher *dispatcher = desk->dispatcher;
    desk->wants = 0;
    ps_message_send(desk->stream, &(struct ps_message){.type = type,
                                                       .generation = dispatcher->options.generation,
                                                       .lineage = dispatcher->terms.lineage,
                                                       .clock = dispenser_clock(dispatcher->dispenser, desk->worker),
                                                       .per_step = dispatcher->options.dispenser.tickets_per_step,
                                                       .base_step = dispatcher->terms.base_step,
                                                       .base_epoch = dispatcher->terms.base_epoch,
                                                       .base_consumed = dispatcher->terms.base_consumed});
}

static void give(struct ticket_desk *desk, int64_t ticket)
{
    desk->wants--;
    ps_message_send(desk->stream, &(struct ps_message){
                                      .type = PS_TICKET, .ticket = ticket, .lineage = desk->dispatcher->terms.lineage});
}

/* Workers stay until the chief has saved what there is: a server that is lost before may cost steps that they do again. */
static void tell_over(struct dispatcher *dispatcher)
{
    dispatcher->phase = PHASE_OVER;
    dispatcher_tell(dispatcher, &(struct dispatcher_event){.kind = EVENT_OVER});
}

void dispatcher_dismiss_desks(struct dispatcher *dispatcher)
{
    dispatcher->phase = PHASE_OVER;
    for (struct ticket_desk *desk = dispatcher->desks; desk != NULL; desk = desk->next)
        if (desk->joined)
            ps_message_send(desk->stream, &(struct ps_message){.type = PS_OVER});
}

/* Nobody knows what a worker that beats stands in: its own log and its data are the place to look. */
static void name_overdue(struct ticket_desk *desk, int64_t ticket)
{
    struct dispatcher *dispatcher = desk->dispatcher;
    char name[WAITING_NAME_MAX];
    unsigned holder;
    int64_t ns;
    if (!dispenser_is_overdue(dispatcher->dispenser, desk->worker, ticket, clock_monotonic_ns(), &holder, &ns))
        return;
    dispatcher_name_worker(dispatcher, holder, name);
    int64_t step = ticket / dispatcher->options.dispenser.tickets_per_step + 1;
    dispatcher_say(dispatcher, "%s has had ticket %lld of step %lld for %lld s; worker %u computes it, too", name,
                   (long long)ticket, (long long)step, (long long)(ns / 1000000000), desk->worker);
}

/* Not each time: it may be so for as long as the job runs. */
static void tell_overtaken(struct dispatcher *dispatcher, unsigned worker)
{
    unsigned times = ++dispatcher->overtaken[worker];
    char name[WAITING_NAME_MAX];
    if ((times & (times - 1)) != 0)
        return;
    dispatcher_name_worker(dispatcher, worker, name);
    dispatcher_say(dispatcher, "%s is more than %lld shares behind (%u times so far); the others go on with its shares",
                   name, (long long)dispatcher->options.dispenser.staleness, times);
}

/* With backup workers, a worker that waits for the slowest one overtakes it. Tickets that the slowest has requested ahead are void; once
 * it has finished what it computes, it requests two tickets again, like a worker that holds none. */
static void overtake(struct ticket_desk *waiting)
{
    struct dispatcher *dispatcher = waiting->dispatcher;
    unsigned worker;
    while (dispenser_overtake(dispatcher->dispenser, waiting->worker, &worker)) {
        dispatcher_witness(dispatcher, TICKET_LEAVE, worker, -1);
        tell_overtaken(dispatcher, worker);
        if (dispatcher->away_ms[worker] != 0) /* it is not connected, so its end will not be seen */
            dispenser_leave(dispatcher->dispenser, worker);
        dispatcher->away_ms[worker] = 0;
        for (struct ticket_desk *desk = dispatcher->desks; desk != NULL; desk = desk->next)
            if (desk->joined && desk->worker == worker)
                welcome(desk, PS_RESTART);
    }
}

/* It is as far as the slowest. */
static void catch_up(struct ticket_desk *desk)
{
    struct dispatcher *dispatcher = desk->dispatcher;
    dispenser_join(dispatcher->dispenser, desk->worker);
    dispatcher_witness(dispatcher, TICKET_JOIN, desk->worker, dispenser_clock(dispatcher->dispenser, desk->worker));
    welcome(desk, PS_RESTART);
}

/* One for each in turn, so that an early asker does not take what a late one needs. */
static bool deal_round(struct dispatcher *dispatcher)
{
    bool dealt = false;
    for (struct ticket_desk *desk = dispatcher->desks; desk != NULL; desk = desk->next) {
        int64_t ticket;
        if (!desk->joined || desk->wants == 0)
            continue;
        overtake(desk);
        if (!dispenser_take(dispatcher->dispenser, desk->worker, clock_monotonic_ns(), &ticket))
            continue;
        dispatcher_witness(dispatcher, TICKET_TAKE, desk->worker, ticket);
        name_overdue(desk, ticket);
        give(desk, ticket);
        dealt = true;
    }
    return dealt;
}

void dispatcher_deal(struct dispatcher *dispatcher)
{
    if (dispatcher->phase != PHASE_OPEN)
        return;
    if (dispenser_is_over(dispatcher->dispenser))
        tell_over(dispatcher);
    else if (!dispatcher->assembles)
        while (deal_round(dispatcher))
            ;
}

/* ---------------------------------------------------------------- what is done */

/* Synchronous: how long a worker took, or has taken so far. */
static void note_pace(const struct ticket_desk *desk, int64_t step, int64_t ns)
{
    struct dispatcher *dispatcher = desk->dispatcher;
    int64_t own_ns, others_ns;
    unsigned worker = desk->worker;
    enum straggler_change change = stragglers_add(dispatcher->stragglers, worker, ns, &own_ns, &others_ns);
    if (change == STRAGGLER_IS_SLOW)
        dispatcher_say(dispatcher, STRAGGLER_TEXT, "worker", worker, (double)own_ns / 1e6,
                       stragglers_measure(dispatcher->stragglers, worker), (double)others_ns / 1e6,
                       stragglers_again(dispatcher->stragglers, worker), (long long)step);
    else if (change == STRAGGLER_KEEPS_UP)
        dispatcher_say(dispatcher, "worker %u keeps up again", worker);
}

/* Whom the crew did not wait for, since a backup worker was there first, would else be heard of late. */
static void note_late(struct dispatcher *dispatcher, int64_t step)
{
    int64_t ns;
    for (const struct ticket_desk *desk = dispatcher->desks; desk != NULL; desk = desk->next)
        if (desk->joined && dispenser_is_late(dispatcher->dispenser, desk->worker, clock_monotonic_ns(), &ns))
            note_pace(desk, step, ns);
}

void dispatcher_step_done(struct dispatcher *dispatcher, int64_t step, double norm)
{
    const struct step_sums *sums = &dispatcher->sums;
    dispatcher->told_step = step;
    dispatcher_tell(dispatcher,
                    &(struct dispatcher_event){.kind = EVENT_STEP,
                                               .step = step,
                                               .loss = sums->targets > 0 ? sums->loss / (double)sums->targets : 0,
                                               .gradient_norm = norm,
                                               .correct = sums->correct,
                                               .targets = sums->targets,
                                               .examples = sums->examples});
    dispatcher->sums = (struct step_sums){.squares = -1};
    if (dispatcher->options.dispenser.mode == PARAMETER_SERVER_SYNCHRONOUS &&
        dispatcher->options.dispenser.backup_workers > 0)
        note_late(dispatcher, step);
}

/* Whether the process that answers for a server now has an update that `acknowledger` had: it is the same, or was started from a
 * state with it, by this chief or by one before it. */
static bool still_has(const struct led_server *server, uint64_t acknowledger, int64_t ticket)
{
    return acknowledger == server->standing.nonce || ticket_set_has(&server->settled, ticket) ||
           ticket_set_has(&server->standing.tickets, ticket);
}

/* A server that died since it acknowledged this may have forgotten it. */
static void note_lost(struct dispatcher *dispatcher, const struct ps_message *message)
{
    for (unsigned i = 0; i < message->server_count && i < dispatcher->options.server_count; i++) {
        struct led_server *server = &dispatcher->servers[i];
        if (still_has(server, message->nonces[i], message->ticket))
            continue;
        const bool is_empty = message->examples == 0;
        struct ticket_set lost = {0};
        ticket_set_add(&lost, message->ticket);
        ticket_set_add(&server->settled, message->ticket);
        ticket_set_add(is_empty ? &server->hollow : &server->lost, message->ticket);
        server->updates_lost += !is_empty;
        dispatcher_write_off(server, &lost, is_empty);
        ticket_set_release(&lost);
    }
}

static int64_t finished_count(const struct dispatcher *dispatcher)
{
    const struct ticket_set *finished = dispenser_finished(dispatcher->dispenser);
    return finished->low + finished->above_count;
}

/* It knows of more that it has finished than its chief, after a connection or a chief was lost. */
static void note_clock(const struct ticket_desk *desk, const struct ps_message *message)
{
    const struct dispatcher *dispatcher = desk->dispatcher;
    if (dispatcher->dispenser != NULL && message->lineage == dispatcher->dispenser_lineage &&
        dispenser_note_clock(dispatcher->dispenser, desk->worker, message->clock))
        dispatcher_witness(dispatcher, TICKET_CLOCK, desk->worker, message->clock);
}

static void on_done(struct ticket_desk *desk, const struct ps_message *message)
{
    struct dispatcher *dispatcher = desk->dispatcher;
    if (dispatcher->dispenser == NULL || message->lineage != dispatcher->terms.lineage || message->ticket < 0 ||
        message->ticket >= dispatcher->options.dispenser.end)
        return;
    bool synchronous = dispatcher->options.dispenser.mode == PARAMETER_SERVER_SYNCHRONOUS;
    if (!synchronous)
        note_lost(dispatcher, message);
    int64_t own_ns;
    bool first = dispenser_done(dispatcher->dispenser, desk->worker, message->ticket, clock_monotonic_ns(), &own_ns);
    dispatcher->done_ms = dispatcher_now_ms();
    if (own_ns >= 0)
        dispatcher_witness(dispatcher, first ? TICKET_DONE : TICKET_AGAIN, desk->worker, message->ticket);
    else if (first)
        dispatcher_witness(dispatcher, TICKET_LATE, desk->worker, message->ticket);
    note_clock(desk, message);
    if (synchronous && own_ns >= 0)
        note_pace(desk, message->ticket / dispatcher->options.dispenser.tickets_per_step + 1, own_ns);
    if (!first) {
        dispatcher->late += synchronous;
        return;
    }
    struct step_sums *sums = &dispatcher->sums;
    sums->loss += message->loss;
    sums->correct += message->correct;
    sums->targets += message->targets;
    sums->examples += message->examples;
    if (message->squares >= 0)
        sums->squares = message->squares;
    if (synchronous && dispatcher->phase == PHASE_OPEN && dispenser_step_is_complete(dispatcher->dispenser))
        dispatcher_reduce(dispatcher);
    int64_t step = finished_count(dispatcher) / dispatcher->options.dispenser.tickets_per_step;
    if (!synchronous && step > dispatcher->told_step) {
        if (!isfinite(sums->loss))
            dispatcher_fail(dispatcher, ERROR_NOT_FINITE, "the loss is not finite; lower the learning rate");
        dispatcher_step_done(dispatcher, step, sums->squares >= 0 ? sqrt(sums->squares) : 0);
    }
}

/* ---------------------------------------------------------------- joining and leaving */

static void refuse(struct ticket_desk *desk, const char *text)
{
    struct ps_message message = {.type = PS_REFUSED};
    snprintf(message.text, sizeof message.text, "%s", text);
    ps_message_send(desk->stream, &message);
}

/* A worker has one desk: an older one is of a process or a connection that is gone. */
static void close_others(struct ticket_desk *desk)
{
    for (struct ticket_desk *other = desk->dispatcher->desks; other != NULL; other = other->next) {
        if (other == desk || !other->joined || other->worker != desk->worker)
            continue;
        other->joined = false;
        rpc_stream_close(other->stream);
    }
}

/* It has no place among the tickets any more. */
static void strike_off(struct dispatcher *dispatcher, unsigned worker)
{
    dispatcher->away_ms[worker] = 0;
    dispenser_leave(dispatcher->dispenser, worker);
    dispatcher_witness(dispatcher, TICKET_LEAVE, worker, -1);
}

/* Whether a chief has said what tickets begin with: before that a worker's word would have no lineage, and none is taken in. */
static bool has_terms(const struct dispatcher *dispatcher)
{
    return dispatcher->dispenser != NULL && dispatcher->terms.lineage == dispatcher->dispenser_lineage;
}

/* Lets a worker in. A new process starts at the slowest worker's clock, which is known only once all earlier workers have had time to
 * report theirs. */
static void enter(struct ticket_desk *desk)
{
    struct dispatcher *dispatcher = desk->dispatcher;
    if (!has_terms(dispatcher))
        return;
    if (desk->clock_lineage != dispatcher->dispenser_lineage)
        desk->clock = -1;
    if (dispatcher->assembles && desk->clock < 0)
        return;
    if (desk->clock < 0)
        strike_off(dispatcher, desk->worker); /* the worker's earlier process */
    dispatcher->away_ms[desk->worker] = 0;
    bool keeps = false;
    if (desk->clock < 0)
        dispenser_join(dispatcher->dispenser, desk->worker);
    else
        keeps = dispenser_rejoin(dispatcher->dispenser, desk->worker, desk->clock, desk->computing);
    dispatcher_witness(dispatcher, TICKET_JOIN, desk->worker, dispenser_clock(dispatcher->dispenser, desk->worker));
    if (keeps)
        dispatcher_witness(dispatcher, TICKET_HOLD, desk->worker, desk->computing);
    if (dispatcher->finished)
        ps_message_send(desk->stream, &(struct ps_message){.type = PS_OVER});
    else
        welcome(desk, PS_WELCOME);
}

static void on_join(struct ticket_desk *desk, const struct ps_message *message)
{
    struct dispatcher *dispatcher = desk->dispatcher;
    if (strcmp(message->job_uid, dispatcher->job_uid) != 0 || message->index >= DISPENSER_WORKERS_MAX) {
        refuse(desk, "another job trains here");
        return;
    }
    if (message->generation.attempt < dispatcher->options.generation.attempt ||
        message->generation.incarnation < dispatcher->worker_incarnations[message->index]) {
        refuse(desk, "a successor has taken this worker's place");
        return;
    }
    bool back = dispatcher->worker_incarnations[message->index] > 0;
    dispatcher->worker_incarnations[message->index] = message->generation.incarnation;
    desk->worker = message->index;
    desk->joined = true;
    desk->clock = message->holds_state ? message->clock : -1;
    desk->clock_lineage = message->lineage;
    desk->computing = message->ticket;
    close_others(desk);
    if (back || dispatcher->told_step > dispatcher->terms.base_step)
        dispatcher_say(dispatcher, "worker %u has joined", desk->worker);
    enter(desk);
}

static void depart(struct ticket_desk *desk, const char *how)
{
    struct dispatcher *dispatcher = desk->dispatcher;
    if (!desk->joined)
        return;
    desk->joined = false;
    stragglers_forget(dispatcher->stragglers, desk->worker);
    if (dispatcher->dispenser == NULL)
        return;
    strike_off(dispatcher, desk->worker);
    char name[WAITING_NAME_MAX];
    dispatcher_name_worker(dispatcher, desk->worker, name);
    if (dispatcher->phase != PHASE_OVER)
        dispatcher_say(dispatcher, "%s %s; its batches go to the others", name, how);
    dispatcher_deal(dispatcher);
}

/* Returns whether to wait for a worker after its connection broke, because its process may still be computing. Otherwise, a worker that
 * runs ahead would gain the staleness bound again with every broken connection. */
static bool is_awaited_back(struct ticket_desk *desk)
{
    struct dispatcher *dispatcher = desk->dispatcher;
    if (dispatcher->options.dispenser.mode != PARAMETER_SERVER_BOUNDED_STALENESS || !desk->joined ||
        dispatcher->dispenser == NULL || dispatcher->phase == PHASE_OVER ||
        !dispenser_is_there(dispatcher->dispenser, desk->worker))
        return false;
    desk->joined = false;
    dispatcher->away_ms[desk->worker] = dispatcher_now_ms();
    return true;
}

static void give_up_the_absent(struct dispatcher *dispatcher)
{
    for (unsigned worker = 0; worker < DISPENSER_WORKERS_MAX; worker++) {
        if (dispatcher->away_ms[worker] == 0 || dispatcher_now_ms() - dispatcher->away_ms[worker] < RETURN_MS)
            continue;
        char name[WAITING_NAME_MAX];
        strike_off(dispatcher, worker);
        dispatcher_name_worker(dispatcher, worker, name);
        dispatcher_say(dispatcher, "%s is lost; its batches go to the others", name);
    }
}

/* All workers that had a clock have reported it by now. */
static void end_assembly(struct dispatcher *dispatcher)
{
    if (!dispatcher->assembles || !has_terms(dispatcher) || dispatcher_now_ms() - dispatcher->started_ms < RETURN_MS)
        return;
    dispatcher->assembles = false;
    for (struct ticket_desk *desk = dispatcher->desks; desk != NULL; desk = desk->next)
        if (desk->joined && !dispenser_is_there(dispatcher->dispenser, desk->worker))
            enter(desk);
}

void dispatcher_restart_desks(struct dispatcher *dispatcher)
{
    for (struct ticket_desk *desk = dispatcher->desks; desk != NULL; desk = desk->next) {
        if (!desk->joined)
            continue;
        if (dispenser_is_there(dispatcher->dispenser, desk->worker))
            welcome(desk, PS_RESTART);
        else if (dispenser_is_overtaken(dispatcher->dispenser, desk->worker))
            catch_up(desk);
        else
            enter(desk);
    }
    dispatcher_deal(dispatcher);
}

/* The end of the stream says that its goodbye was heard: it may go. */
static void see_off(struct ticket_desk *desk)
{
    depart(desk, "leaves on request");
    rpc_stream_close(desk->stream);
}

static void hear(struct ticket_desk *desk, const struct ps_message *message)
{
    struct dispatcher *dispatcher = desk->dispatcher;
    desk->heard_ms = dispatcher_now_ms();
    if (message->type == PS_JOIN && !desk->joined)
        on_join(desk, message);
    if (!desk->joined)
        return;
    if (message->type == PS_WANT) {
        note_clock(desk, message);
        desk->wants += desk->wants < WANTS_MAX;
        if (desk->wants == WANTS_MAX && has_terms(dispatcher) &&
            dispenser_is_overtaken(dispatcher->dispenser, desk->worker))
            catch_up(desk);
    }
    if (message->type == PS_DONE)
        on_done(desk, message);
    else if (message->type == PS_LEAVE)
        see_off(desk);
    dispatcher_deal(dispatcher);
}

/* ---------------------------------------------------------------- the stream */

static void on_message(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    struct ticket_desk *desk = context;
    struct ps_message message;
    struct error error = ERROR_INIT;
    if (ps_message_decode(bytes, length, &message, &error) < 0) {
        ps_message_answer_unread(stream, &error);
        return;
    }
    pthread_mutex_lock(&desk->dispatcher->lock);
    hear(desk, &message);
    pthread_mutex_unlock(&desk->dispatcher->lock);
    ps_message_release(&message);
}

static void on_closed(void *context, struct rpc_stream *stream, const struct error *error)
{
    (void)stream, (void)error;
    struct ticket_desk *desk = context;
    struct dispatcher *dispatcher = desk->dispatcher;
    pthread_mutex_lock(&dispatcher->lock);
    for (struct ticket_desk **place = &dispatcher->desks; *place != NULL; place = &(*place)->next) {
        if (*place == desk) {
            *place = desk->next;
            break;
        }
    }
    if (!is_awaited_back(desk))
        depart(desk, "is lost");
    pthread_cond_broadcast(&dispatcher->changed);
    pthread_mutex_unlock(&dispatcher->lock);
    free(desk);
}

void dispatcher_desk_opened(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events,
                            void **ret_context)
{
    struct dispatcher *dispatcher = context;
    struct ticket_desk *desk = memory_allocate(1, sizeof *desk);
    *desk = (struct ticket_desk){.dispatcher = dispatcher, .stream = stream, .heard_ms = dispatcher_now_ms()};
    pthread_mutex_lock(&dispatcher->lock);
    desk->next = dispatcher->desks;
    dispatcher->desks = desk;
    pthread_mutex_unlock(&dispatcher->lock);
    *ret_events = (struct rpc_stream_events){.message = on_message, .closed = on_closed};
    *ret_context = desk;
}

void dispatcher_desks_tick(struct dispatcher *dispatcher)
{
    int64_t now = dispatcher_now_ms();
    int64_t death_ms = dispatcher->options.death_ms > 0 ? dispatcher->options.death_ms : DEATH_MS_DEFAULT;
    for (struct ticket_desk *desk = dispatcher->desks; desk != NULL; desk = desk->next) {
        if (desk->joined && now - desk->heard_ms > death_ms) {
            rpc_stream_close(desk->stream);
            depart(desk, "has been silent for long and counts as dead");
        }
        if (desk->joined && now - desk->beat_ms >= BEAT_MS) {
            desk->beat_ms = now;
            ps_message_send(desk->stream, &(struct ps_message){.type = PS_BEAT});
        }
    }
    if (dispatcher->dispenser == NULL)
        return;
    give_up_the_absent(dispatcher);
    end_assembly(dispatcher);
    if (dispatcher->options.dispenser.backup_workers > 0 ||
        dispatcher->options.dispenser.mode == PARAMETER_SERVER_BOUNDED_STALENESS)
        dispatcher_deal(dispatcher); /* a worker may be overdue by now, or need not be waited for any longer */
}
