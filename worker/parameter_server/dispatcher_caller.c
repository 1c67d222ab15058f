/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/condition.h"
#include "common/extremes.h"
#include "common/lock.h"
#include "worker/parameter_server/dispatcher_parts.h"

#define FAREWELL_MS 2000
#define SAVE_MS_DEFAULT 120000
#define LAST_SAVE_MS_DEFAULT 15000

void dispatcher_cancel(struct dispatcher *dispatcher)
{
    SCOPED_LOCK(&dispatcher->lock);
    if (!dispatcher->cancelled)
        dispatcher->cancelled_ms = dispatcher_now_ms();
    dispatcher->cancelled = true;
    pthread_cond_broadcast(&dispatcher->changed);
}

/* With the lock held. */
static int check(const struct dispatcher *dispatcher, struct error *error)
{
    if (dispatcher->fatal.kind != ERROR_NONE)
        return error_set(error, dispatcher->fatal.kind, "%s", dispatcher->fatal.message);
    if (dispatcher->cancelled)
        return error_set(error, ERROR_CANCELLED, "left on request");
    return 0;
}

static void wait_for(struct dispatcher *dispatcher, int64_t ms)
{
    condition_wait_ms(&dispatcher->changed, &dispatcher->lock, ms);
}

/* Runs a function on the rpc's thread, which owns the streams, and waits until it is done. */
static void on_rpc(struct dispatcher *dispatcher, void (*task)(struct dispatcher *dispatcher, void *context),
                   void *context)
{
    dispatcher->task = task;
    dispatcher->task_context = context;
    rpc_wake(dispatcher->rpc);
    while (dispatcher->task != NULL)
        wait_for(dispatcher, 1000);
}

/* ---------------------------------------------------------------- servers */

void server_standing_release(struct server_standing *standing)
{
    ticket_set_release(&standing->tickets);
}

static void drop_losses(struct dispatcher *dispatcher)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < dispatcher->event_count; i++) {
        struct dispatcher_event event = dispatcher->events[(dispatcher->first_event + i) % EVENTS_MAX];
        if (event.kind != EVENT_SERVER_LOST)
            dispatcher->events[(dispatcher->first_event + kept++) % EVENTS_MAX] = event;
    }
    dispatcher->event_count = kept;
}

int dispatcher_await_servers(struct dispatcher *dispatcher, struct server_standing standings[PS_SERVERS_MAX],
                             struct error *error)
{
    SCOPED_LOCK(&dispatcher->lock);
    while (check(dispatcher, NULL) == 0 && !dispatcher_all_stand(dispatcher))
        wait_for(dispatcher, 1000);
    int result = check(dispatcher, error);
    for (unsigned i = 0; result == 0 && i < dispatcher->options.server_count; i++) {
        standings[i] = dispatcher->servers[i].standing;
        standings[i].tickets = (struct ticket_set){0};
        ticket_set_copy(&standings[i].tickets, &dispatcher->servers[i].standing.tickets);
    }
    drop_losses(dispatcher);
    return result;
}

/* One that lost its state alone: what it had acknowledged, and its snapshot lacks, is lost there. */
static int64_t settle(struct dispatcher *dispatcher, struct led_server *server, const struct dispatcher_plan *plan)
{
    const struct ticket_set *finished = ticket_scheduler_finished(dispatcher->scheduler);
    const struct dispatcher_options *options = &dispatcher->options;
    int64_t lost = 0, end = ticket_set_end(finished);
    ticket_set_copy(&server->settled, &plan->starts[server->number].tickets);
    ticket_set_add_all(&server->settled, &server->lost); /* counted before */
    ticket_set_add_all(&server->settled, &server->hollow);
    for (int64_t ticket = server->settled.low; ticket < end; ticket++) {
        if (!ticket_set_has(finished, ticket) || ticket_set_has(&server->settled, ticket))
            continue;
        bool is_empty = options->is_empty != NULL && options->is_empty(options->context, plan, ticket);
        ticket_set_add(is_empty ? &server->hollow : &server->lost, ticket);
        lost += !is_empty;
    }
    ticket_set_add_all(&server->settled, finished);
    return lost;
}

/* Arguments and results of dispatcher_begin on the rpc's thread. */
struct beginning {
    const struct dispatcher_plan *plan;
    bool keeps;                 /* finished and held tickets remain so */
    struct ticket_set finished; /* else: the tickets that are finished from now on */
    int64_t lost;
};

/* Returns whether tickets remain finished and held. They do only within one lineage; even a
 * rollback that failed halfway has left the old one. */
static bool keeps(const struct dispatcher *dispatcher, const struct dispatcher_plan *plan)
{
    return plan->keeps_tickets && (dispatcher->scheduler == NULL || plan->lineage == dispatcher->scheduler_lineage);
}

/* A successor of a chief: the servers go on with what they have, and workers with their clocks. */
static bool succeeds(const struct dispatcher *dispatcher, const struct beginning *beginning)
{
    bool goes_on = false;
    for (unsigned i = 0; i < dispatcher->options.server_count; i++)
        goes_on |= !beginning->plan->starts[i].needed;
    return goes_on;
}

/* How far workers were under the chief before: survivors may come late, or not at all. */
static void note_furthest(struct dispatcher *dispatcher, const struct dispatcher_plan *plan)
{
    for (unsigned i = 0; i < dispatcher->options.server_count; i++) {
        const struct server_standing *standing = &dispatcher->servers[i].standing;
        if (standing->holds_state && standing->lineage == plan->lineage)
            ticket_scheduler_note_furthest(dispatcher->scheduler, standing->clock);
    }
}

static void set_end(struct dispatcher *dispatcher, int64_t end)
{
    if (end == 0)
        return;
    dispatcher->options.scheduler.end = end;
    if (dispatcher->scheduler != NULL)
        ticket_scheduler_set_end(dispatcher->scheduler, end);
}

static void find_finished(struct dispatcher *dispatcher, struct beginning *beginning)
{
    const struct dispatcher_plan *plan = beginning->plan;
    set_end(dispatcher, plan->end);
    beginning->keeps = keeps(dispatcher, plan);
    ticket_set_copy(&beginning->finished, &plan->finished);
    for (unsigned i = 0; !beginning->keeps && i < dispatcher->options.server_count; i++)
        if (plan->starts[i].needed)
            ticket_set_intersect(&beginning->finished, &plan->starts[i].tickets);
    if (dispatcher->scheduler != NULL)
        return;
    dispatcher->scheduler = ticket_scheduler_new(&dispatcher->options.scheduler, &beginning->finished, plan->step);
    dispatcher->scheduler_lineage = plan->lineage;
    note_furthest(dispatcher, plan);
    dispatcher->assembles =
        dispatcher->options.scheduler.mode == PARAMETER_SERVER_BOUNDED_STALENESS && succeeds(dispatcher, beginning);
}

/* Returns the clock for a server that starts again within the lineage; 0 in a new lineage. */
static int64_t clock_of(const struct dispatcher *dispatcher, const struct dispatcher_plan *plan)
{
    bool goes_on = dispatcher->scheduler != NULL && plan->lineage == dispatcher->scheduler_lineage;
    return goes_on ? ticket_scheduler_furthest(dispatcher->scheduler) : 0;
}

static void settle_start(struct dispatcher *dispatcher, struct led_server *server, struct beginning *beginning)
{
    const struct server_start *start = &beginning->plan->starts[server->number];
    if (beginning->keeps) {
        beginning->lost += settle(dispatcher, server, beginning->plan);
    } else {
        ticket_set_copy(&server->settled, &start->tickets);
        ticket_set_reset(&server->lost, 0);
        ticket_set_reset(&server->hollow, 0);
    }
}

static void send_starts(struct dispatcher *dispatcher, void *context)
{
    struct beginning *beginning = context;
    const struct dispatcher_plan *plan = beginning->plan;
    find_finished(dispatcher, beginning);
    if (!beginning->keeps)
        dispatcher->phase = PHASE_CLOSED;
    for (unsigned i = 0; i < dispatcher->options.server_count; i++) {
        struct led_server *server = &dispatcher->servers[i];
        const struct server_start *start = &plan->starts[i];
        if (!start->needed || server->stream == NULL)
            continue;
        settle_start(dispatcher, server, beginning);
        struct ps_message message = {.type = PS_START,
                                     .lineage = plan->lineage,
                                     .clock = clock_of(dispatcher, plan),
                                     .updates = start->updates,
                                     .empty = start->empty + ticket_set_count_missing(&server->hollow, &start->tickets),
                                     .base_step = plan->base_step,
                                     .base_epoch = plan->base_epoch,
                                     .base_consumed = plan->base_consumed,
                                     .tickets = server->settled};
        snprintf(message.path, sizeof message.path, "%s", start->path);
        ps_message_send(server->stream, &message);
        server->starting = true;
        server->asked_ms = dispatcher_now_ms();
    }
}

static bool is_starting(const struct dispatcher *dispatcher)
{
    for (unsigned i = 0; i < dispatcher->options.server_count; i++)
        if (dispatcher->servers[i].starting && dispatcher->servers[i].stands)
            return true;
    return false;
}

/* Records which tickets still count as finished after a rollback, and that no ticket is held any more. */
static void witness_rollback(const struct dispatcher *dispatcher, const struct ticket_set *finished)
{
    dispatcher_witness(dispatcher, TICKET_VOID, 0, finished->low);
    for (unsigned i = 0; i < finished->above_count; i++)
        dispatcher_witness(dispatcher, TICKET_KEPT, 0, finished->above[i]);
}

/* All are as far as each other: for the record, as if they had come anew. */
static void begin_clocks(struct dispatcher *dispatcher)
{
    dispatcher->assembles = false;
    ticket_scheduler_reset_clocks(dispatcher->scheduler);
    for (unsigned worker = 0; worker < TICKET_SCHEDULER_WORKERS_MAX; worker++) {
        if (!ticket_scheduler_is_there(dispatcher->scheduler, worker))
            continue;
        dispatcher_witness(dispatcher, TICKET_LEAVE, worker, -1);
        dispatcher_witness(dispatcher, TICKET_JOIN, worker, 0);
    }
}

static void open_sessions(struct dispatcher *dispatcher, void *context)
{
    struct beginning *beginning = context;
    const struct dispatcher_plan *plan = beginning->plan;
    bool first = dispatcher->terms.starts == NULL;
    if (plan->lineage != dispatcher->scheduler_lineage || (first && !succeeds(dispatcher, beginning)))
        dispatcher_witness(dispatcher, TICKET_BACK, 0, -1);
    if (!beginning->keeps) {
        ticket_scheduler_rollback(dispatcher->scheduler, &beginning->finished, plan->step);
        witness_rollback(dispatcher, &beginning->finished);
        if (plan->lineage != dispatcher->scheduler_lineage)
            begin_clocks(dispatcher);
        dispatcher->scheduler_lineage = plan->lineage;
    }
    if (first && beginning->keeps) /* what the chief before it has counted */
        witness_rollback(dispatcher, ticket_scheduler_finished(dispatcher->scheduler));
    dispatcher->terms = *plan;
    dispatcher->phase = PHASE_OPEN;
    dispatcher->done_ms = dispatcher_now_ms();
    dispatcher_order(dispatcher, &(struct ps_message){.type = PS_ADMIT});
    if (beginning->keeps && !first) {
        dispatcher_resume_step(dispatcher);
        dispatcher_deal(dispatcher);
        return;
    }
    const struct ticket_set *finished = ticket_scheduler_finished(dispatcher->scheduler);
    dispatcher->reported_step =
        (finished->low + finished->above_count) / dispatcher->options.scheduler.tickets_per_step;
    dispatcher->sums = (struct step_sums){.squares = -1};
    dispatcher_resume_step(dispatcher);
    dispatcher_restart_sessions(dispatcher);
}

static bool all_hold_state(const struct dispatcher *dispatcher)
{
    for (unsigned i = 0; i < dispatcher->options.server_count; i++)
        if (!dispatcher->servers[i].standing.holds_state)
            return false;
    return true;
}

int dispatcher_begin(struct dispatcher *dispatcher, const struct dispatcher_plan *plan, int64_t *ret_lost,
                     struct error *error)
{
    pthread_mutex_lock(&dispatcher->lock);
    struct beginning beginning = {.plan = plan};
    on_rpc(dispatcher, send_starts, &beginning);
    while (check(dispatcher, NULL) == 0 && dispatcher_all_stand(dispatcher) && is_starting(dispatcher))
        wait_for(dispatcher, 1000);
    int result = check(dispatcher, error);
    if (result == 0 && (!dispatcher_all_stand(dispatcher) || !all_hold_state(dispatcher)))
        result = error_set(error, ERROR_UNAVAILABLE, "a ps was lost while the crew began");
    if (result == 0) {
        on_rpc(dispatcher, open_sessions, &beginning);
        *ret_lost = beginning.lost;
    }
    pthread_mutex_unlock(&dispatcher->lock);
    ticket_set_release(&beginning.finished);
    return result;
}

/* ---------------------------------------------------------------- events */

int dispatcher_next_event(struct dispatcher *dispatcher, int64_t timeout_ms, struct dispatcher_event *ret_event,
                          struct error *error)
{
    SCOPED_LOCK(&dispatcher->lock);
    if (check(dispatcher, NULL) == 0 && dispatcher->event_count == 0)
        wait_for(dispatcher, timeout_ms);
    int result = check(dispatcher, error);
    *ret_event = (struct dispatcher_event){.kind = EVENT_NONE};
    if (dispatcher->event_count > 0 && result == 0) {
        *ret_event = dispatcher->events[dispatcher->first_event];
        dispatcher->first_event = (dispatcher->first_event + 1) % EVENTS_MAX;
        dispatcher->event_count--;
    }
    return result;
}

/* ---------------------------------------------------------------- saving */

static bool is_saving(const struct led_server *server)
{
    return server->saving;
}

static bool is_busy(const struct led_server *server)
{
    return server->busy;
}

/* Returns whether a server refused this save because of an earlier one, which it may have finished
 * since. */
static bool is_put_off(const struct led_server *server)
{
    return server->saved && server->save.verdict == PS_SAVE_WAITS;
}

static bool any(const struct dispatcher *dispatcher, bool (*is)(const struct led_server *server))
{
    for (unsigned i = 0; i < dispatcher->options.server_count; i++)
        if (is(&dispatcher->servers[i]))
            return true;
    return false;
}

/* Fails with the server's own error; its errno says whether the volume is full. */
static int fail_as(unsigned number, const struct ps_message *save, struct error *error)
{
    bool full = save->verdict == ENOSPC || save->verdict == EDQUOT;
    error_set(error, full ? ERROR_NO_SPACE : ERROR_SYSTEM, "ps %u: %s", number, save->text);
    if (error)
        error->os_error = save->verdict == PS_SAVE_WAITS ? 0 : (int)save->verdict;
    return -1;
}

static int collect(struct dispatcher *dispatcher, struct server_saved saved[PS_SERVERS_MAX], struct error *error)
{
    for (unsigned i = 0; i < dispatcher->options.server_count; i++) {
        const struct led_server *server = &dispatcher->servers[i];
        char name[WAITING_NAME_MAX];
        dispatcher_name_server(dispatcher, i, name);
        if (!server->saved)
            return error_set(error, ERROR_UNAVAILABLE, "%s was lost before its shard was written", name);
        if (server->save.text[0])
            return fail_as(i, &server->save, error);
    }
    for (unsigned i = 0; i < dispatcher->options.server_count; i++) {
        const struct ps_message *save = &dispatcher->servers[i].save;
        saved[i] = (struct server_saved){
            .bytes = save->bytes, .crc = save->crc, .updates = save->updates, .empty = save->empty};
        snprintf(saved[i].name, sizeof saved[i].name, "%.63s", save->path);
        ticket_set_copy(&saved[i].tickets, &save->tickets);
    }
    return 0;
}

static uint64_t find_leaving(const struct dispatcher *dispatcher)
{
    uint64_t leaving = 0;
    for (unsigned i = 0; i < dispatcher->options.server_count; i++)
        leaving |= (uint64_t)dispatcher->servers[i].leaving << i;
    return leaving;
}

/* Orders a save. A new server without a state has nothing to save, and would not answer. */
static void order_save(struct dispatcher *dispatcher, void *context)
{
    struct ps_message *order = context;
    for (unsigned i = 0; i < dispatcher->options.server_count; i++) {
        struct led_server *server = &dispatcher->servers[i];
        server->saved = false;
        server->save_number = order->step;
        server->leaving_before_save = server->leaving;
        server->saving = server->stands && server->standing.holds_state;
        server->asked_ms = dispatcher_now_ms();
    }
    dispatcher_order(dispatcher, order);
}

static int64_t save_ms(const struct dispatcher *dispatcher)
{
    return dispatcher->options.save_ms > 0 ? dispatcher->options.save_ms : SAVE_MS_DEFAULT;
}

/* Checks the disk's progress; releases the lock meanwhile. */
static void look_at_shards(struct dispatcher *dispatcher, const char *directory)
{
    if (directory == NULL || dispatcher->options.written == NULL)
        return;
    pthread_mutex_unlock(&dispatcher->lock);
    int64_t written = dispatcher->options.written(dispatcher->options.context, directory);
    pthread_mutex_lock(&dispatcher->lock);
    if (written != dispatcher->written)
        dispatcher->grown_ms = dispatcher_now_ms();
    dispatcher->written = written;
}

/* A server that beats although its disk hangs would keep the chief waiting forever, and the chief does nothing else meanwhile. Once the
 * chief is asked to leave, the whole save has a time limit. */
static bool takes_too_long(const struct dispatcher *dispatcher, int64_t began_ms, int64_t save_began_ms)
{
    int64_t since_ms = int64_max(int64_max(save_began_ms, dispatcher->cancelled_ms), dispatcher->grown_ms);
    int64_t most_ms = dispatcher->options.last_save_ms > 0 ? dispatcher->options.last_save_ms : LAST_SAVE_MS_DEFAULT;
    return dispatcher_now_ms() - int64_max(began_ms, dispatcher->grown_ms) >= save_ms(dispatcher) ||
           (dispatcher->cancelled && dispatcher_now_ms() - since_ms >= most_ms);
}

/* Waits until `is` holds for no server, or until that takes too long. A process that is leaving has
 * no time for a second wait. */
static void await_none(struct dispatcher *dispatcher, bool (*is)(const struct led_server *server),
                       int64_t save_began_ms, const char *directory)
{
    int64_t began_ms = dispatcher_now_ms();
    bool ends = dispatcher->saves_no_more;
    while (dispatcher->fatal.kind == ERROR_NONE && any(dispatcher, is) && !ends) {
        wait_for(dispatcher, 200);
        look_at_shards(dispatcher, directory);
        ends = any(dispatcher, is) && takes_too_long(dispatcher, began_ms, save_began_ms);
    }
    dispatcher->saves_no_more = ends && dispatcher->cancelled;
}

/* Waits until no server is busy; a busy one is described by the order that it has not finished. */
static void await_disks(struct dispatcher *dispatcher, int64_t save_began_ms)
{
    dispatcher->awaits_disks = true;
    for (unsigned i = 0; i < dispatcher->options.server_count; i++)
        dispatcher->servers[i].asked_ms = dispatcher_now_ms();
    await_none(dispatcher, is_busy, save_began_ms, NULL);
    dispatcher->awaits_disks = false;
}

/* If one server was busy, all are ordered again, because a step of a synchronous run may have been applied in between; the other servers
 * write again. */
static void save_all(struct dispatcher *dispatcher, struct ps_message *order, bool waits)
{
    int64_t began_ms = dispatcher_now_ms();
    do {
        if (waits)
            await_disks(dispatcher, began_ms);
        if (waits && any(dispatcher, is_busy))
            return;
        /* No chief has given an order this number: what a server still says to an earlier one is no answer. */
        order->step = clock_monotonic_ns();
        on_rpc(dispatcher, order_save, order);
        await_none(dispatcher, is_saving, began_ms, order->path);
    } while (waits && any(dispatcher, is_put_off) && !any(dispatcher, is_saving) &&
             dispatcher->fatal.kind == ERROR_NONE);
}

static bool is_late(const struct led_server *server)
{
    return server->saving || server->busy;
}

/* "ps 0 (…), ps 2 (…)": those that are late, and have (not) said anything since they were told; "" for none. */
static void name_late(const struct dispatcher *dispatcher, bool answers, char text[PS_TEXT_MAX])
{
    text[0] = '\0';
    for (unsigned i = 0; i < dispatcher->options.server_count; i++) {
        const struct led_server *server = &dispatcher->servers[i];
        char name[WAITING_NAME_MAX];
        size_t length = strlen(text);
        if (!is_late(server) || (server->heard_ms > server->asked_ms) != answers)
            continue;
        dispatcher_name_server(dispatcher, i, name);
        snprintf(text + length, PS_TEXT_MAX - length, "%s%s", length > 0 ? ", " : "", name);
    }
}

/* Only of one that answers is it the volume that is slow. Nobody waits for them any more. */
static int fail_late(struct dispatcher *dispatcher, struct error *error)
{
    char slow[PS_TEXT_MAX], silent[PS_TEXT_MAX];
    long long seconds = (long long)(save_ms(dispatcher) / 1000);
    name_late(dispatcher, true, slow);
    name_late(dispatcher, false, silent);
    for (unsigned i = 0; i < dispatcher->options.server_count; i++) {
        struct led_server *server = &dispatcher->servers[i];
        server->busy |= server->saving;
        server->saving = false;
    }
    if (!silent[0])
        return error_set(
            error, ERROR_SYSTEM,
            "checkpoint shards not written within %lld s: %s; no other save begins before they are written; check "
            "the volume",
            seconds, slow);
    if (!slow[0])
        return error_set(error, ERROR_SYSTEM, "no answer to a save within %lld s: %s; look at the log there", seconds,
                         silent);
    return error_set(
        error, ERROR_SYSTEM,
        "checkpoint shards not written within %lld s: %s; no other save begins before they are written; check the "
        "volume; no answer at all: %s; look at the log there",
        seconds, slow, silent);
}

int dispatcher_save(struct dispatcher *dispatcher, const char *directory, bool last,
                    struct server_saved saved[PS_SERVERS_MAX], struct error *error)
{
    SCOPED_LOCK(&dispatcher->lock);
    struct ps_message order = {.type = PS_SAVE, .last = last};
    bool waits = last || dispatcher->phase == PHASE_OVER;
    snprintf(order.path, sizeof order.path, "%s", directory);
    save_all(dispatcher, &order, waits);
    bool some_are_late = any(dispatcher, is_saving) || (waits && any(dispatcher, is_busy));
    int result;
    if (dispatcher->fatal.kind != ERROR_NONE)
        result = check(dispatcher, error);
    else if (some_are_late && !dispatcher->cancelled)
        result = fail_late(dispatcher, error);
    else if (some_are_late)
        result = error_set(error, ERROR_CANCELLED, "terminated (SIGTERM) before every ps had written its shard");
    else
        result = collect(dispatcher, saved, error);
    return result;
}

/* ---------------------------------------------------------------- servers that leave */

uint64_t dispatcher_leaving(struct dispatcher *dispatcher)
{
    SCOPED_LOCK(&dispatcher->lock);
    return find_leaving(dispatcher);
}

static void send_dismissals(struct dispatcher *dispatcher, void *context)
{
    const bool *is_saved = context;
    for (unsigned i = 0; i < dispatcher->options.server_count; i++) {
        struct led_server *server = &dispatcher->servers[i];
        if (server->leaving && server->stream != NULL)
            ps_message_send(server->stream, &(struct ps_message){.type = PS_LEAVING, .holds_state = *is_saved});
        server->leaving = false;
    }
}

struct seeing_off {
    bool is_saved;
    uint64_t gone;
};

static void release_leaving(struct dispatcher *dispatcher, void *context)
{
    struct seeing_off *result = context;
    result->is_saved = true;
    for (unsigned i = 0; i < dispatcher->options.server_count; i++)
        result->is_saved &= dispatcher->servers[i].leaving_before_save || !dispatcher->servers[i].leaving;
    result->gone = find_leaving(dispatcher);
    if (result->is_saved)
        send_dismissals(dispatcher, &result->is_saved);
}

bool dispatcher_save_and_release(struct dispatcher *dispatcher, uint64_t *ret_gone)
{
    struct seeing_off result;
    pthread_mutex_lock(&dispatcher->lock);
    on_rpc(dispatcher, release_leaving, &result);
    pthread_mutex_unlock(&dispatcher->lock);
    if (result.is_saved)
        *ret_gone = result.gone;
    return result.is_saved;
}

void dispatcher_dismiss(struct dispatcher *dispatcher)
{
    bool is_saved = false;
    SCOPED_LOCK(&dispatcher->lock);
    on_rpc(dispatcher, send_dismissals, &is_saved);
}

/* ---------------------------------------------------------------- looking on, and the end */

bool dispatcher_misses_a_server(struct dispatcher *dispatcher)
{
    SCOPED_LOCK(&dispatcher->lock);
    return !dispatcher_all_stand(dispatcher) || !all_hold_state(dispatcher);
}

int64_t dispatcher_lost(struct dispatcher *dispatcher)
{
    SCOPED_LOCK(&dispatcher->lock);
    int64_t lost = 0;
    for (unsigned i = 0; i < dispatcher->options.server_count; i++)
        lost += dispatcher->servers[i].updates_lost;
    return lost;
}

int64_t dispatcher_late(struct dispatcher *dispatcher)
{
    SCOPED_LOCK(&dispatcher->lock);
    return dispatcher->late;
}

static bool anybody_here(const struct dispatcher *dispatcher)
{
    for (const struct worker_session *session = dispatcher->sessions; session != NULL; session = session->next)
        if (session->joined)
            return true;
    for (unsigned i = 0; i < dispatcher->options.server_count; i++)
        if (dispatcher->servers[i].stream != NULL)
            return true;
    return false;
}

static void order_finish(struct dispatcher *dispatcher, void *context)
{
    (void)context;
    dispatcher->finished = true;
    dispatcher_dismiss_sessions(dispatcher);
    dispatcher_order(dispatcher, &(struct ps_message){.type = PS_FINISH});
}

void dispatcher_finish(struct dispatcher *dispatcher)
{
    SCOPED_LOCK(&dispatcher->lock);
    int64_t end = dispatcher_now_ms() + FAREWELL_MS;
    on_rpc(dispatcher, order_finish, NULL);
    while (anybody_here(dispatcher) && dispatcher_now_ms() < end)
        wait_for(dispatcher, 100);
}
