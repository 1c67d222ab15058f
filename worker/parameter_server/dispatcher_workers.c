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

static void welcome(struct worker_session *session, enum ps_message_type type)
{
    const struct dispatcher *dispatcher = session->dispatcher;
    session->wants = 0;
    ps_message_send(session->stream,
                    &(struct ps_message){.type = type,
                                         .generation = dispatcher->options.generation,
                                         .lineage = dispatcher->terms.lineage,
                                         .clock = ticket_scheduler_clock(dispatcher->scheduler, session->worker),
                                         .per_step = dispatcher->options.scheduler.tickets_per_step,
                                         .base_step = dispatcher->terms.base_step,
                                         .base_epoch = dispatcher->terms.base_epoch,
                                         .base_consumed = dispatcher->terms.base_consumed});
}

static void give(struct worker_session *session, int64_t ticket)
{
    session->wants--;
    ps_message_send(
        session->stream,
        &(struct ps_message){.type = PS_TICKET, .ticket = ticket, .lineage = session->dispatcher->terms.lineage});
}

/* Workers stay until the chief has saved what there is: a server that is lost before may cost steps that they do again. */
static void tell_over(struct dispatcher *dispatcher)
{
    dispatcher->phase = PHASE_OVER;
    dispatcher_tell(dispatcher, &(struct dispatcher_event){.kind = EVENT_OVER});
}

void dispatcher_dismiss_sessions(struct dispatcher *dispatcher)
{
    dispatcher->phase = PHASE_OVER;
    for (struct worker_session *session = dispatcher->sessions; session != NULL; session = session->next)
        if (session->joined)
            ps_message_send(session->stream, &(struct ps_message){.type = PS_OVER});
}

/* Nobody knows what a worker that beats stands in: its own log and its data are the place to look. */
static void name_overdue(struct worker_session *session, int64_t ticket)
{
    struct dispatcher *dispatcher = session->dispatcher;
    char name[WAITING_NAME_MAX];
    unsigned holder;
    int64_t ns;
    if (!ticket_scheduler_is_overdue(dispatcher->scheduler, session->worker, ticket, clock_monotonic_ns(), &holder,
                                     &ns))
        return;
    dispatcher_name_worker(dispatcher, holder, name);
    int64_t step = ticket / dispatcher->options.scheduler.tickets_per_step + 1;
    dispatcher_say(dispatcher, "%s has had ticket %lld of step %lld for %lld s; worker %u computes it, too", name,
                   (long long)ticket, (long long)step, (long long)(ns / 1000000000), session->worker);
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
                   name, (long long)dispatcher->options.scheduler.staleness, times);
}

/* With backup workers, a worker that waits for the slowest one overtakes it. Tickets that the slowest has requested ahead are void; once
 * it has finished what it computes, it requests two tickets again, like a worker that holds none. */
static void overtake(struct worker_session *waiting)
{
    struct dispatcher *dispatcher = waiting->dispatcher;
    unsigned worker;
    while (ticket_scheduler_overtake(dispatcher->scheduler, waiting->worker, &worker)) {
        dispatcher_witness(dispatcher, TICKET_LEAVE, worker, -1);
        tell_overtaken(dispatcher, worker);
        if (dispatcher->away_ms[worker] != 0) /* it is not connected, so its end will not be seen */
            ticket_scheduler_leave(dispatcher->scheduler, worker);
        dispatcher->away_ms[worker] = 0;
        for (struct worker_session *session = dispatcher->sessions; session != NULL; session = session->next)
            if (session->joined && session->worker == worker)
                welcome(session, PS_RESTART);
    }
}

/* It is as far as the slowest. */
static void catch_up(struct worker_session *session)
{
    struct dispatcher *dispatcher = session->dispatcher;
    ticket_scheduler_join(dispatcher->scheduler, session->worker);
    dispatcher_witness(dispatcher, TICKET_JOIN, session->worker,
                       ticket_scheduler_clock(dispatcher->scheduler, session->worker));
    welcome(session, PS_RESTART);
}

/* One for each in turn, so that an early asker does not take what a late one needs. */
static bool deal_round(struct dispatcher *dispatcher)
{
    bool dealt = false;
    for (struct worker_session *session = dispatcher->sessions; session != NULL; session = session->next) {
        int64_t ticket;
        if (!session->joined || session->wants == 0)
            continue;
        overtake(session);
        if (!ticket_scheduler_take(dispatcher->scheduler, session->worker, clock_monotonic_ns(), &ticket))
            continue;
        dispatcher_witness(dispatcher, TICKET_TAKE, session->worker, ticket);
        name_overdue(session, ticket);
        give(session, ticket);
        dealt = true;
    }
    return dealt;
}

void dispatcher_deal(struct dispatcher *dispatcher)
{
    if (dispatcher->phase != PHASE_OPEN)
        return;
    if (ticket_scheduler_is_over(dispatcher->scheduler))
        tell_over(dispatcher);
    else if (!dispatcher->assembles)
        while (deal_round(dispatcher))
            ;
}

/* ---------------------------------------------------------------- what is done */

/* How long a worker took for a ticket, or has taken so far. */
static void note_pace(const struct worker_session *session, int64_t step, int64_t ns)
{
    struct dispatcher *dispatcher = session->dispatcher;
    int64_t own_ns, others_ns;
    unsigned worker = session->worker;
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
    for (const struct worker_session *session = dispatcher->sessions; session != NULL; session = session->next)
        if (session->joined &&
            ticket_scheduler_is_late(dispatcher->scheduler, session->worker, clock_monotonic_ns(), &ns))
            note_pace(session, step, ns);
}

void dispatcher_step_done(struct dispatcher *dispatcher, int64_t step, double norm)
{
    const struct step_sums *sums = &dispatcher->sums;
    dispatcher->reported_step = step;
    struct dispatcher_event event = {.kind = EVENT_STEP,
                                     .step = step,
                                     .loss = sums->targets > 0 ? sums->loss / (double)sums->targets : 0,
                                     .gradient_norm = norm,
                                     .correct = sums->correct,
                                     .targets = sums->targets,
                                     .examples = sums->examples};
    event.has_straggler = stragglers_find(dispatcher->stragglers, &event.straggler);
    dispatcher_tell(dispatcher, &event);
    dispatcher->sums = (struct step_sums){.squares = -1};
    if (dispatcher->options.scheduler.mode == PARAMETER_SERVER_SYNCHRONOUS &&
        dispatcher->options.scheduler.backup_workers > 0)
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
        dispatcher_discard_tickets(server, &lost, is_empty);
        ticket_set_release(&lost);
    }
}

static int64_t finished_count(const struct dispatcher *dispatcher)
{
    const struct ticket_set *finished = ticket_scheduler_finished(dispatcher->scheduler);
    return finished->low + finished->above_count;
}

/* It knows of more that it has finished than its chief, after a connection or a chief was lost. */
static void note_clock(const struct worker_session *session, const struct ps_message *message)
{
    const struct dispatcher *dispatcher = session->dispatcher;
    if (dispatcher->scheduler != NULL && message->lineage == dispatcher->scheduler_lineage &&
        ticket_scheduler_note_clock(dispatcher->scheduler, session->worker, message->clock))
        dispatcher_witness(dispatcher, TICKET_CLOCK, session->worker, message->clock);
}

/* Of the time that a worker has held a ticket, what it did not need for the one before. Without a step in common, nobody waits for its
 * tickets, and it holds the next one while it computes. */
static int64_t interval_ns(struct worker_session *session, int64_t held_ns, int64_t now_ns)
{
    int64_t since_done_ns = now_ns - session->done_ns;
    session->done_ns = now_ns;
    return held_ns < since_done_ns ? held_ns : since_done_ns;
}

static void on_done(struct worker_session *session, const struct ps_message *message)
{
    struct dispatcher *dispatcher = session->dispatcher;
    if (dispatcher->scheduler == NULL || message->lineage != dispatcher->terms.lineage || message->ticket < 0 ||
        message->ticket >= dispatcher->options.scheduler.end)
        return;
    bool synchronous = dispatcher->options.scheduler.mode == PARAMETER_SERVER_SYNCHRONOUS;
    if (!synchronous)
        note_lost(dispatcher, message);
    int64_t own_ns, now_ns = clock_monotonic_ns();
    bool first = ticket_scheduler_done(dispatcher->scheduler, session->worker, message->ticket, now_ns, &own_ns);
    dispatcher->done_ms = dispatcher_now_ms();
    if (own_ns >= 0)
        dispatcher_witness(dispatcher, first ? TICKET_DONE : TICKET_AGAIN, session->worker, message->ticket);
    else if (first)
        dispatcher_witness(dispatcher, TICKET_LATE, session->worker, message->ticket);
    note_clock(session, message);
    if (own_ns >= 0)
        note_pace(session, message->ticket / dispatcher->options.scheduler.tickets_per_step + 1,
                  interval_ns(session, own_ns, now_ns));
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
    if (synchronous && dispatcher->phase == PHASE_OPEN && ticket_scheduler_step_is_complete(dispatcher->scheduler))
        dispatcher_reduce(dispatcher);
    int64_t step = finished_count(dispatcher) / dispatcher->options.scheduler.tickets_per_step;
    if (!synchronous && step > dispatcher->reported_step) {
        if (!isfinite(sums->loss))
            dispatcher_fail(dispatcher, ERROR_NOT_FINITE, "the loss is not finite; lower the learning rate");
        dispatcher_step_done(dispatcher, step, sums->squares >= 0 ? sqrt(sums->squares) : 0);
    }
}

/* ---------------------------------------------------------------- joining and leaving */

static void refuse(struct worker_session *session, const char *text)
{
    struct ps_message message = {.type = PS_REFUSED};
    snprintf(message.text, sizeof message.text, "%s", text);
    ps_message_send(session->stream, &message);
}

/* A worker has one session: an older one is of a process or a connection that is gone. */
static void close_others(struct worker_session *session)
{
    for (struct worker_session *other = session->dispatcher->sessions; other != NULL; other = other->next) {
        if (other == session || !other->joined || other->worker != session->worker)
            continue;
        other->joined = false;
        rpc_stream_close(other->stream);
    }
}

/* It has no place among the tickets any more. */
static void strike_off(struct dispatcher *dispatcher, unsigned worker)
{
    dispatcher->away_ms[worker] = 0;
    ticket_scheduler_leave(dispatcher->scheduler, worker);
    dispatcher_witness(dispatcher, TICKET_LEAVE, worker, -1);
}

/* Whether a chief has said what tickets begin with: before that a worker's word would have no lineage, and none is taken in. */
static bool has_terms(const struct dispatcher *dispatcher)
{
    return dispatcher->scheduler != NULL && dispatcher->terms.lineage == dispatcher->scheduler_lineage;
}

/* Lets a worker in. A new process starts at the slowest worker's clock, which is known only once all earlier workers have had time to
 * report theirs. */
static void enter(struct worker_session *session)
{
    struct dispatcher *dispatcher = session->dispatcher;
    if (!has_terms(dispatcher))
        return;
    if (session->clock_lineage != dispatcher->scheduler_lineage)
        session->clock = -1;
    if (dispatcher->assembles && session->clock < 0)
        return;
    if (session->clock < 0)
        strike_off(dispatcher, session->worker); /* the worker's earlier process */
    dispatcher->away_ms[session->worker] = 0;
    bool keeps = false;
    if (session->clock < 0)
        ticket_scheduler_join(dispatcher->scheduler, session->worker);
    else
        keeps = ticket_scheduler_rejoin(dispatcher->scheduler, session->worker, session->clock, session->computing);
    dispatcher_witness(dispatcher, TICKET_JOIN, session->worker,
                       ticket_scheduler_clock(dispatcher->scheduler, session->worker));
    if (keeps)
        dispatcher_witness(dispatcher, TICKET_HOLD, session->worker, session->computing);
    if (dispatcher->finished)
        ps_message_send(session->stream, &(struct ps_message){.type = PS_OVER});
    else
        welcome(session, PS_WELCOME);
}

static void on_join(struct worker_session *session, const struct ps_message *message)
{
    struct dispatcher *dispatcher = session->dispatcher;
    if (strcmp(message->job_uid, dispatcher->job_uid) != 0 || message->index >= TICKET_SCHEDULER_WORKERS_MAX) {
        refuse(session, "another job trains here");
        return;
    }
    if (message->generation.attempt < dispatcher->options.generation.attempt ||
        message->generation.incarnation < dispatcher->worker_incarnations[message->index]) {
        refuse(session, "a successor has taken this worker's place");
        return;
    }
    bool back = dispatcher->worker_incarnations[message->index] > 0;
    dispatcher->worker_incarnations[message->index] = message->generation.incarnation;
    session->worker = message->index;
    session->joined = true;
    session->clock = message->holds_state ? message->clock : -1;
    session->clock_lineage = message->lineage;
    session->computing = message->ticket;
    close_others(session);
    if (back || dispatcher->reported_step > dispatcher->terms.base_step)
        dispatcher_say(dispatcher, "worker %u has joined", session->worker);
    enter(session);
}

static void depart(struct worker_session *session, const char *how)
{
    struct dispatcher *dispatcher = session->dispatcher;
    if (!session->joined)
        return;
    session->joined = false;
    stragglers_forget(dispatcher->stragglers, session->worker);
    if (dispatcher->scheduler == NULL)
        return;
    strike_off(dispatcher, session->worker);
    char name[WAITING_NAME_MAX];
    dispatcher_name_worker(dispatcher, session->worker, name);
    if (dispatcher->phase != PHASE_OVER)
        dispatcher_say(dispatcher, "%s %s; its batches go to the others", name, how);
    dispatcher_deal(dispatcher);
}

/* Returns whether to wait for a worker after its connection broke, because its process may still be computing. Otherwise, a worker that
 * runs ahead would gain the staleness bound again with every broken connection. */
static bool is_awaited_back(struct worker_session *session)
{
    struct dispatcher *dispatcher = session->dispatcher;
    if (dispatcher->options.scheduler.mode != PARAMETER_SERVER_BOUNDED_STALENESS || !session->joined ||
        dispatcher->scheduler == NULL || dispatcher->phase == PHASE_OVER ||
        !ticket_scheduler_is_there(dispatcher->scheduler, session->worker))
        return false;
    session->joined = false;
    dispatcher->away_ms[session->worker] = dispatcher_now_ms();
    return true;
}

static void give_up_the_absent(struct dispatcher *dispatcher)
{
    for (unsigned worker = 0; worker < TICKET_SCHEDULER_WORKERS_MAX; worker++) {
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
    for (struct worker_session *session = dispatcher->sessions; session != NULL; session = session->next)
        if (session->joined && !ticket_scheduler_is_there(dispatcher->scheduler, session->worker))
            enter(session);
}

void dispatcher_restart_sessions(struct dispatcher *dispatcher)
{
    for (struct worker_session *session = dispatcher->sessions; session != NULL; session = session->next) {
        if (!session->joined)
            continue;
        if (ticket_scheduler_is_there(dispatcher->scheduler, session->worker))
            welcome(session, PS_RESTART);
        else if (ticket_scheduler_is_overtaken(dispatcher->scheduler, session->worker))
            catch_up(session);
        else
            enter(session);
    }
    dispatcher_deal(dispatcher);
}

/* The end of the stream says that its goodbye was heard: it may go. */
static void release_leaving(struct worker_session *session)
{
    depart(session, "leaves on request");
    rpc_stream_close(session->stream);
}

static void hear(struct worker_session *session, const struct ps_message *message)
{
    struct dispatcher *dispatcher = session->dispatcher;
    session->heard_ms = dispatcher_now_ms();
    if (message->type == PS_JOIN && !session->joined)
        on_join(session, message);
    if (!session->joined)
        return;
    if (message->type == PS_WANT) {
        note_clock(session, message);
        session->wants += session->wants < WANTS_MAX;
        if (session->wants == WANTS_MAX && has_terms(dispatcher) &&
            ticket_scheduler_is_overtaken(dispatcher->scheduler, session->worker))
            catch_up(session);
    }
    if (message->type == PS_DONE)
        on_done(session, message);
    else if (message->type == PS_LEAVE)
        release_leaving(session);
    dispatcher_deal(dispatcher);
}

/* ---------------------------------------------------------------- the stream */

static void on_message(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    struct worker_session *session = context;
    struct ps_message message;
    struct error error = ERROR_INIT;
    if (ps_message_decode(bytes, length, &message, &error) < 0) {
        ps_message_answer_unread(stream, &error);
        return;
    }
    pthread_mutex_lock(&session->dispatcher->lock);
    hear(session, &message);
    pthread_mutex_unlock(&session->dispatcher->lock);
    ps_message_release(&message);
}

static void on_closed(void *context, struct rpc_stream *stream, const struct error *error)
{
    (void)stream, (void)error;
    struct worker_session *session = context;
    struct dispatcher *dispatcher = session->dispatcher;
    pthread_mutex_lock(&dispatcher->lock);
    for (struct worker_session **place = &dispatcher->sessions; *place != NULL; place = &(*place)->next) {
        if (*place == session) {
            *place = session->next;
            break;
        }
    }
    if (!is_awaited_back(session))
        depart(session, "is lost");
    pthread_cond_broadcast(&dispatcher->changed);
    pthread_mutex_unlock(&dispatcher->lock);
    free(session);
}

void dispatcher_session_opened(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events,
                               void **ret_context)
{
    struct dispatcher *dispatcher = context;
    struct worker_session *session = memory_allocate(1, sizeof *session);
    *session = (struct worker_session){.dispatcher = dispatcher, .stream = stream, .heard_ms = dispatcher_now_ms()};
    pthread_mutex_lock(&dispatcher->lock);
    session->next = dispatcher->sessions;
    dispatcher->sessions = session;
    pthread_mutex_unlock(&dispatcher->lock);
    *ret_events = (struct rpc_stream_events){.message = on_message, .closed = on_closed};
    *ret_context = session;
}

void dispatcher_sessions_tick(struct dispatcher *dispatcher)
{
    int64_t now = dispatcher_now_ms();
    int64_t death_ms = dispatcher->options.death_ms > 0 ? dispatcher->options.death_ms : DEATH_MS_DEFAULT;
    for (struct worker_session *session = dispatcher->sessions; session != NULL; session = session->next) {
        if (session->joined && now - session->heard_ms > death_ms) {
            rpc_stream_close(session->stream);
            depart(session, "has been silent for long and counts as dead");
        }
        if (session->joined && now - session->beat_ms >= BEAT_MS) {
            session->beat_ms = now;
            ps_message_send(session->stream, &(struct ps_message){.type = PS_BEAT});
        }
    }
    if (dispatcher->scheduler == NULL)
        return;
    give_up_the_absent(dispatcher);
    end_assembly(dispatcher);
    if (dispatcher->options.scheduler.backup_workers > 0 ||
        dispatcher->options.scheduler.mode == PARAMETER_SERVER_BOUNDED_STALENESS)
        dispatcher_deal(dispatcher); /* a worker may be overdue by now, or need not be waited for any longer */
}
