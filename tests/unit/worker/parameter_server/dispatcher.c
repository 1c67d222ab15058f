/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/dispatcher.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/lock.h"
#include "common/memory.h"
#include "worker/comm/rpc.h"
#include "worker/coordination/address_book.h"
#include "worker/parameter_server/bulk.h"
#include "worker/parameter_server/recovery.h"
#include "worker/parameter_server/ticket_link.h"

/* A chief with fake servers, which hold no variables, and which the test makes answer out of turn or die. */

#define SERVERS 2
#define END 320
#define FEW 40
#define SLOW_LOOKS 10
#define STALENESS 2

struct stage;

struct false_server {
    struct stage *stage;
    uint64_t nonce;
    bool holds_state;
    atomic_bool dies_of_start; /* the next one; tests change it beside the thread that reads it */
    bool hangs;                /* never answers a save */
    bool is_silent;            /* does not report its standing */
    atomic_uint refuses;       /* saves, each for one before it that it then comes to the end of */
    bool parts;                /* asks to leave as soon as it is led */
    uint32_t lineage;
    int64_t updates, clock;
    struct ticket_set tickets;
};

struct stage {
    char hosts[SERVERS + 1][32];
    struct crew_seat seats[1 + SERVERS]; /* the chief, then the servers */
    struct rpc *rpc;
    struct false_server servers[SERVERS];
    struct dispatcher *dispatcher;
    enum parameter_server_mode mode;
    bool begun;
    uint32_t lineage;
    int64_t save_ms;
    int64_t (*written)(void *context, const char *directory);
    unsigned looks;

    struct rpc *worker_rpc;
    struct address_book *book;
    struct ticket_link *link;

    pthread_mutex_t lock;
    unsigned takes, dones, voids; /* that the chief has told of */
};

static void witness(void *context, enum ticket_fate fate, unsigned worker, int64_t ticket)
{
    (void)worker, (void)ticket;
    struct stage *stage = context;
    SCOPED_LOCK(&stage->lock);
    stage->takes += fate == TICKET_TAKE;
    stage->dones += fate == TICKET_DONE;
    stage->voids += fate == TICKET_VOID;
}

static unsigned count(struct stage *stage, const unsigned *counter)
{
    SCOPED_LOCK(&stage->lock);
    return *counter;
}

static void await(struct stage *stage, const unsigned *counter, unsigned least)
{
    for (int i = 0; count(stage, counter) < least; i++) {
        cr_assert(i < 60000, "it does not come");
        usleep(1000);
    }
}

/* ---------------------------------------------------------------- servers */

static void say_standing(struct false_server *server, struct rpc_stream *stream, bool answers)
{
    ps_message_send(stream, &(struct ps_message){.type = PS_SERVER_STATE,
                                                 .nonce = server->nonce,
                                                 .holds_state = server->holds_state,
                                                 .pull = answers,
                                                 .lineage = server->lineage,
                                                 .updates = server->updates,
                                                 .clock = server->clock,
                                                 .tickets = server->tickets});
}

static void on_start(struct false_server *server, struct rpc_stream *stream, const struct ps_message *message)
{
    if (server->dies_of_start) {
        server->dies_of_start = server->holds_state = false;
        server->lineage = 0;
        server->nonce++;
        rpc_stream_close(stream);
        return;
    }
    server->holds_state = true;
    server->lineage = message->lineage;
    server->updates = message->updates;
    ticket_set_copy(&server->tickets, &message->tickets);
    say_standing(server, stream, true);
}

/* First sends the late answer to an earlier order. */
static void on_save(struct false_server *server, struct rpc_stream *stream, const struct ps_message *message)
{
    if (server->refuses > 0) {
        server->refuses--;
        ps_message_send(stream, &(struct ps_message){.type = PS_SAVED,
                                                     .step = message->step,
                                                     .verdict = PS_SAVE_WAITS,
                                                     .text = "it writes another"});
        ps_message_send(stream, &(struct ps_message){.type = PS_SAVED, .step = message->step - 1, .path = "earlier"});
        return;
    }
    ps_message_send(stream, &(struct ps_message){.type = PS_SAVED, .step = message->step - 1, .path = "earlier"});
    ps_message_send(stream, &(struct ps_message){.type = PS_SAVED, .step = message->step, .path = "this one"});
}

static void on_message(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    struct false_server *server = context;
    struct ps_message message;
    cr_assert(ps_message_decode(bytes, length, &message, NULL) == 0);
    if (message.type == PS_CLAIM)
        say_standing(server, stream, false);
    if (message.type == PS_CLAIM && server->parts)
        ps_message_send(stream, &(struct ps_message){.type = PS_LEAVING});
    if (message.type == PS_LOOK && !server->is_silent)
        ps_message_send(stream, &(struct ps_message){.type = PS_SEEN});
    if (message.type == PS_START)
        on_start(server, stream, &message);
    else if (message.type == PS_SAVE && !server->hangs)
        on_save(server, stream, &message);
    ps_message_release(&message);
}

static void opened(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events, void **ret_context)
{
    (void)stream;
    *ret_events = (struct rpc_stream_events){.message = on_message};
    *ret_context = context;
}

static const struct rpc_method methods[] = {{PS_METHOD_CONTROL, opened}};

static void open_server(struct stage *stage, unsigned number)
{
    struct rpc_server *listener;
    struct false_server *server = &stage->servers[number];
    *server = (struct false_server){.stage = stage,
                                    .nonce = 100 * (number + 1),
                                    .holds_state = server->holds_state,
                                    .lineage = server->lineage,
                                    .clock = server->clock,
                                    .parts = server->parts,
                                    .hangs = server->hangs,
                                    .is_silent = server->is_silent};
    cr_assert(rpc_server_start(stage->rpc, stage->hosts[1 + number], 0, methods, 1, server, &listener, NULL) == 0);
    stage->seats[1 + number] = (struct crew_seat){
        .role = "ps", .index = number, .host = stage->hosts[1 + number], .port = rpc_server_port(listener)};
}

/* ---------------------------------------------------------------- the chief and a worker */

static double rate(void *context, int64_t step)
{
    (void)context, (void)step;
    return 1;
}

static void tick(void *context)
{
    ticket_link_tick(((struct stage *)context)->link);
}

static void wake(void *context)
{
    rpc_wake(((struct stage *)context)->worker_rpc);
}

static void open_worker(struct stage *stage)
{
    cr_assert(rpc_new(tick, stage, 20, &stage->worker_rpc, NULL) == 0);
    cr_assert(address_book_new(stage->seats, 1, wake, stage, &stage->book, NULL) == 0);
    const struct ticket_link_options options = {.rpc = stage->worker_rpc,
                                                .book = stage->book,
                                                .chief_port = stage->seats[0].port,
                                                .job_uid = "uid",
                                                .generation = {.incarnation = 1}};
    cr_assert(ticket_link_new(&options, &stage->link, NULL) == 0);
    rpc_start_ticks(stage->worker_rpc);
}

static void set_up(struct stage *stage)
{
    if (stage->mode == PARAMETER_SERVER_NOT_SAID)
        stage->mode = PARAMETER_SERVER_ASYNC;
    for (unsigned i = 0; i <= SERVERS; i++)
        snprintf(stage->hosts[i], sizeof stage->hosts[i], "127.%u.%u.%u", 201 + (unsigned)getpid() % 50,
                 (unsigned)getpid() / 50 % 250, i + 1);
    pthread_mutex_init(&stage->lock, NULL);
    cr_assert(rpc_new(NULL, NULL, 1000, &stage->rpc, NULL) == 0);
    for (unsigned i = 0; i < SERVERS; i++)
        open_server(stage, i);
    const struct dispatcher_options options = {
        .job_uid = "uid",
        .generation = {.incarnation = 1},
        .listen_address = stage->hosts[0],
        .servers = &stage->seats[1],
        .server_count = SERVERS,
        .scheduler = {.mode = stage->mode, .tickets_per_step = 1, .staleness = STALENESS, .end = END},
        .rate = rate,
        .witness = witness,
        .context = stage,
        .save_ms = stage->save_ms,
        .written = stage->written,
        .patience_ms = 1,
        .last_save_ms = 200,
    };
    cr_assert(dispatcher_start(&options, &stage->dispatcher, NULL) == 0);
    stage->seats[0] =
        (struct crew_seat){.role = "worker", .host = stage->hosts[0], .port = dispatcher_port(stage->dispatcher)};
    open_worker(stage);
}

static void close_worker(struct stage *stage)
{
    rpc_stop(stage->worker_rpc);
    address_book_free(stage->book);
    rpc_free(stage->worker_rpc);
    ticket_link_free(stage->link);
}

static void tear_down(struct stage *stage)
{
    close_worker(stage);
    dispatcher_free(stage->dispatcher);
    rpc_free(stage->rpc);
    for (unsigned i = 0; i < SERVERS; i++)
        ticket_set_release(&stage->servers[i].tickets);
}

/* As a chief does it, without a checkpoint. `all`: also where the servers hold something. */
static int begin(struct stage *stage, bool all)
{
    const struct recovery_options options = {.mode = stage->mode,
                                             .server_count = SERVERS,
                                             .per_step = 1,
                                             .chief_incarnation = 1,
                                             .begun = stage->begun,
                                             .lineage = stage->lineage};
    struct server_standing standings[PS_SERVERS_MAX];
    struct server_start *starts = memory_allocate(PS_SERVERS_MAX, sizeof *starts);
    struct dispatcher_plan plan;
    struct recovery_source source = {.path = memory_copy_string("")};
    int64_t lost;
    cr_assert(dispatcher_await_servers(stage->dispatcher, standings, NULL) == 0);
    enum recovery_kind kind = recovery_choose(&options, standings);
    recovery_plan(&options, all ? RECOVERY_ALL : kind, standings, &source, starts, &plan);
    int result = dispatcher_begin(stage->dispatcher, &plan, &lost, NULL);
    if (result == 0) {
        stage->begun = true;
        stage->lineage = plan.lineage;
    }
    for (unsigned i = 0; i < SERVERS; i++)
        server_standing_release(&standings[i]);
    recovery_plan_release(&plan, starts);
    recovery_source_release(&source);
    free(starts);
    return result;
}

static struct ticket_grant take(struct stage *stage)
{
    struct ticket_grant grant;
    cr_assert(ticket_link_next(stage->link, &grant, NULL) == 0);
    return grant;
}

static void finish(struct stage *stage)
{
    struct ticket_result result = {.targets = 1, .examples = 1, .squares = -1, .server_count = SERVERS};
    for (unsigned i = 0; i < SERVERS; i++)
        result.nonces[i] = stage->servers[i].nonce;
    ticket_link_done(stage->link, &result);
}

static void do_tickets(struct stage *stage, unsigned tickets)
{
    for (unsigned i = 0; i < tickets; i++) {
        (void)take(stage);
        finish(stage);
    }
    await(stage, &stage->dones, tickets);
}

/* ---------------------------------------------------------------- rollbacks */

/* The servers have dropped the finished tickets, and so has the chief, although its beginning failed half-way. */
Test(dispatcher, a_rollback_that_is_interrupted_is_one_all_the_same, .timeout = 120)
{
    struct stage stage = {0};
    set_up(&stage);
    cr_assert(begin(&stage, false) == 0);
    for (int64_t ticket = 0; ticket < 5; ticket++) {
        cr_expect(take(&stage).ticket == ticket);
        finish(&stage);
    }
    await(&stage, &stage.dones, 5);
    uint32_t before = stage.lineage;
    stage.servers[1].dies_of_start = true;
    cr_assert(begin(&stage, true) < 0);
    cr_assert(begin(&stage, false) == 0);
    cr_expect(stage.lineage > before && count(&stage, &stage.voids) == 2);
    struct ticket_grant grant = take(&stage);
    for (int i = 0; grant.lineage != stage.lineage && i < 2; i++) { /* what it was given before is void */
        ticket_link_done(stage.link, NULL);
        grant = take(&stage);
    }
    cr_expect(grant.lineage == stage.lineage && grant.ticket == 0, "ticket %lld of lineage %u, not 0 of %u",
              (long long)grant.ticket, grant.lineage, stage.lineage);
    cr_expect(dispatcher_lost(stage.dispatcher) == 0);
    tear_down(&stage);
}

/* Its words are sent by another thread, which may come late. */
Test(dispatcher, a_fast_worker_is_heard_of_every_ticket, .timeout = 120)
{
    struct stage stage = {0};
    set_up(&stage);
    cr_assert(begin(&stage, false) == 0);
    do_tickets(&stage, FEW);
    tear_down(&stage);
}

/* All servers had it, and then went back. */
Test(dispatcher, what_was_done_before_a_rollback_does_not_count_after_it, .timeout = 120)
{
    struct stage stage = {0};
    set_up(&stage);
    cr_assert(begin(&stage, false) == 0);
    cr_expect(take(&stage).ticket == 0);
    await(&stage, &stage.takes, 2);
    cr_assert(begin(&stage, true) == 0);
    await(&stage, &stage.takes, 3); /* the worker knows of it */
    finish(&stage);
    await(&stage, &stage.takes, 4); /* which it asks for after its word */
    cr_expect(count(&stage, &stage.dones) == 0);
    tear_down(&stage);
}

/* ---------------------------------------------------------------- the bound */

/* Workers that do as the test says. The second is a new process. */
struct false_worker {
    struct stage *stage;
    unsigned number;
    int64_t clock; /* that it brings along; -1: none */
    uint32_t lineage;
    bool wants;
    atomic_bool comes;
    struct rpc_stream *stream;
    unsigned beats, welcomes, tickets; /* that the chief has sent */
    struct ps_message welcome;         /* the first */
};

static void hear(struct false_worker *worker, struct rpc_stream *stream, const struct ps_message *message)
{
    pthread_mutex_lock(&worker->stage->lock);
    worker->beats += message->type == PS_BEAT;
    worker->tickets += message->type == PS_TICKET;
    if (message->type == PS_WELCOME && worker->welcomes++ == 0)
        worker->welcome = *message;
    pthread_mutex_unlock(&worker->stage->lock);
    if (message->type == PS_WELCOME || message->type == PS_RESTART)
        ps_message_send(stream, &(struct ps_message){.type = PS_WANT});
}

static void on_chiefs_word(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    struct ps_message message;
    cr_assert(ps_message_decode(bytes, length, &message, NULL) == 0);
    hear(context, stream, &message);
    ps_message_release(&message);
}

static void act(void *context)
{
    static const struct rpc_stream_events events = {.message = on_chiefs_word};
    struct false_worker *workers = context;
    for (struct false_worker *worker = workers; worker < workers + 2; worker++) {
        struct stage *stage = worker->stage;
        if (worker->stream == NULL && atomic_load(&worker->comes)) {
            cr_assert(rpc_stream_open(stage->worker_rpc, stage->hosts[0], stage->seats[0].port, PS_METHOD_TICKETS, 0,
                                      &events, worker, &worker->stream, NULL) == 0);
            ps_message_send(worker->stream, &(struct ps_message){.type = PS_JOIN,
                                                                 .job_uid = "uid",
                                                                 .generation = {.incarnation = 1},
                                                                 .index = worker->number,
                                                                 .ticket = -1,
                                                                 .holds_state = worker->clock >= 0,
                                                                 .lineage = worker->lineage,
                                                                 .clock = worker->clock});
        } else if (worker->stream != NULL) {
            ps_message_send(worker->stream, &(struct ps_message){.type = PS_BEAT});
        }
    }
}

#define BEFORE 50 /* tickets that each has finished under the chief before */

static void set_up_successor(struct stage *stage, struct false_worker workers[2])
{
    stage->mode = PARAMETER_SERVER_BOUNDED_STALENESS;
    for (unsigned i = 0; i < SERVERS; i++) {
        stage->servers[i].holds_state = true;
        stage->servers[i].lineage = 7;
    }
    set_up(stage);
    close_worker(stage);
    for (unsigned i = 0; i < 2; i++)
        workers[i] = (struct false_worker){.stage = stage, .number = i, .clock = i == 0 ? BEFORE : -1, .lineage = 7};
    cr_assert(rpc_new(act, workers, 50, &stage->worker_rpc, NULL) == 0);
    rpc_start_ticks(stage->worker_rpc);
}

static void tear_down_successor(struct stage *stage)
{
    rpc_stop(stage->worker_rpc);
    rpc_free(stage->worker_rpc);
    dispatcher_free(stage->dispatcher);
    rpc_free(stage->rpc);
    for (unsigned i = 0; i < SERVERS; i++)
        ticket_set_release(&stage->servers[i].tickets);
}

/* The second for which a successor waits is over by then. Without that, the worker that came last would be let in first; and a welcome
 * before the terms would have made a worker report a clock of no lineage. */
Test(dispatcher, a_survivor_does_not_wait_until_a_new_worker_has_caught_up, .timeout = 180)
{
    struct stage stage = {0};
    struct false_worker workers[2];
    set_up_successor(&stage, workers);
    for (unsigned i = 0; i < 2; i++) {
        atomic_store(&workers[i].comes, true);
        await(&stage, &workers[i].beats, 1); /* it has a session with the chief */
    }
    usleep(1200000);
    cr_assert(begin(&stage, false) == 0);
    await(&stage, &workers[0].tickets, 1);
    await(&stage, &workers[1].welcomes, 1);
    for (unsigned i = 0; i < 2; i++)
        cr_expect(workers[i].welcome.lineage == 7 && workers[i].welcome.clock == BEFORE, "worker %u: %lld of %u", i,
                  (long long)workers[i].welcome.clock, workers[i].welcome.lineage);
    tear_down_successor(&stage);
}

/* However late: the servers know how far the crew was. */
Test(dispatcher, a_survivor_that_comes_late_does_not_wait_either, .timeout = 180)
{
    struct stage stage = {.servers[0].clock = BEFORE - 1, .servers[1].clock = BEFORE};
    struct false_worker workers[2];
    set_up_successor(&stage, workers);
    cr_assert(begin(&stage, false) == 0);
    atomic_store(&workers[1].comes, true);
    await(&stage, &workers[1].tickets, 1);
    cr_expect(workers[1].welcome.clock == BEFORE - STALENESS);
    atomic_store(&workers[0].comes, true);
    await(&stage, &workers[0].tickets, 1);
    tear_down_successor(&stage);
}

/* ---------------------------------------------------------------- events */

/* The chief evaluates or saves meanwhile, and hears nothing: of the steps it need hear the newest only. */
Test(dispatcher, a_server_that_asks_to_leave_is_heard_behind_any_number_of_steps, .timeout = 120)
{
    struct stage stage = {.servers[1].parts = true};
    struct dispatcher_event event;
    unsigned leaving = 0;
    int64_t step = 0;
    set_up(&stage);
    cr_assert(begin(&stage, false) == 0);
    do_tickets(&stage, 300);
    do {
        cr_assert(dispatcher_next_event(stage.dispatcher, 0, &event, NULL) == 0);
        leaving += event.kind == EVENT_SERVER_LEAVING;
        cr_expect(event.kind != EVENT_STEP || event.step > step, "step %lld came after step %lld",
                  (long long)event.step, (long long)step);
        step = event.kind == EVENT_STEP ? event.step : step;
    } while (event.kind != EVENT_NONE);
    cr_expect(leaving == 1, "%u servers have asked to leave", leaving);
    cr_expect(step == 300, "the newest step is %lld", (long long)step);
    tear_down(&stage);
}

static bool is_said(struct stage *stage, const char *words)
{
    struct dispatcher_event event;
    do
        cr_assert(dispatcher_next_event(stage->dispatcher, 60000, &event, NULL) == 0);
    while (event.kind != EVENT_NONE && (event.kind != EVENT_TEXT || strstr(event.text, "its batches") == NULL));
    return strstr(event.text, words) != NULL;
}

/* Its process ends at once, and its streams with it. */
Test(dispatcher, a_worker_that_leaves_is_not_taken_for_a_lost_one, .timeout = 120)
{
    struct stage stage = {0};
    set_up(&stage);
    cr_assert(begin(&stage, false) == 0);
    for (int i = 0; i < 20; i++) {
        (void)take(&stage);
        finish(&stage);
        ticket_link_leave(stage.link);
        close_worker(&stage);
        cr_expect(is_said(&stage, "leaves on request"), "the chief has not heard goodbye %d", i);
        open_worker(&stage);
    }
    tear_down(&stage);
}

/* ---------------------------------------------------------------- saves */

Test(dispatcher, the_answer_to_an_earlier_save_is_none, .timeout = 120)
{
    struct stage stage = {0};
    struct server_saved saved[PS_SERVERS_MAX] = {0};
    set_up(&stage);
    cr_assert(begin(&stage, false) == 0);
    cr_assert(dispatcher_save(stage.dispatcher, "nowhere", false, saved, NULL) == 0);
    for (unsigned i = 0; i < SERVERS; i++) {
        cr_expect_str_eq(saved[i].name, "this one");
        ticket_set_release(&saved[i].tickets);
    }
    tear_down(&stage);
}

/* Its process beats on. */
Test(dispatcher, a_chief_that_was_asked_to_leave_does_not_wait_for_a_disk_that_hangs, .timeout = 120)
{
    struct stage stage = {.servers[1].hangs = true};
    struct server_saved saved[PS_SERVERS_MAX] = {0};
    struct error error = ERROR_INIT;
    set_up(&stage);
    cr_assert(begin(&stage, false) == 0);
    dispatcher_cancel(stage.dispatcher);
    for (int i = 0; i < 2; i++) {
        cr_expect(dispatcher_save(stage.dispatcher, "nowhere", true, saved, &error) < 0);
        cr_expect(error.kind == ERROR_CANCELLED, "%s", error.message);
        error_clear(&error);
    }
    tear_down(&stage);
}

/* It trains on; and what the disk still says to that save is no answer to the next. */
Test(dispatcher, a_chief_does_not_wait_for_ever_for_a_disk_that_hangs, .timeout = 120)
{
    struct stage stage = {.servers[1].hangs = true, .save_ms = 200};
    struct server_saved saved[PS_SERVERS_MAX] = {0};
    char text[PS_TEXT_MAX];
    set_up(&stage);
    cr_assert(begin(&stage, false) == 0);
    for (int i = 0; i < 2; i++) {
        struct error error = ERROR_INIT;
        cr_expect(dispatcher_save(stage.dispatcher, "nowhere", false, saved, &error) < 0);
        cr_expect(error.kind == ERROR_SYSTEM && strstr(error.message, "ps 1") != NULL, "%s", error.message);
        dispatcher_describe(stage.dispatcher, text);
        cr_expect(strstr(text, "shard") == NULL, "%s", text);
    }
    do_tickets(&stage, 1);
    tear_down(&stage);
}

/* The chief looks before it loses its patience: at every look there is more, until the last one. */
static int64_t write_slowly(void *context, const char *directory)
{
    struct stage *stage = context;
    cr_expect_str_eq(directory, "nowhere");
    stage->looks++;
    return stage->looks < SLOW_LOOKS ? stage->looks : SLOW_LOOKS;
}

static void expect_patience(bool leaves)
{
    struct stage stage = {.servers[1].hangs = true, .save_ms = 200, .written = write_slowly};
    struct server_saved saved[PS_SERVERS_MAX] = {0};
    struct error error = ERROR_INIT;
    set_up(&stage);
    cr_assert(begin(&stage, false) == 0);
    if (leaves)
        dispatcher_cancel(stage.dispatcher);
    cr_expect(dispatcher_save(stage.dispatcher, "nowhere", leaves, saved, &error) < 0);
    cr_expect(stage.looks >= SLOW_LOOKS, "%u looks, %s", stage.looks, error.message);
    tear_down(&stage);
}

Test(dispatcher, a_disk_is_waited_for_as_long_as_it_writes, .timeout = 120)
{
    expect_patience(false);
    expect_patience(true);
}

/* Tries again until one has been heard in time, which is up to the machine. */
Test(dispatcher, all_servers_with_hanging_disks_are_named_and_volumes_only_of_those_that_answer, .timeout = 120)
{
    struct stage stage = {.servers[0].hangs = true, .servers[1] = {.hangs = true, .is_silent = true}, .save_ms = 1000};
    struct server_saved saved[PS_SERVERS_MAX] = {0};
    struct error error = ERROR_INIT;
    bool both = false;
    set_up(&stage);
    cr_assert(begin(&stage, false) == 0);
    for (int i = 0; i < 60 && !both; i++) {
        error_clear(&error);
        cr_expect(dispatcher_save(stage.dispatcher, "nowhere", false, saved, &error) < 0);
        const char *volume = strstr(error.message, "check the volume");
        const char *first = strstr(error.message, "ps 0"), *second = strstr(error.message, "ps 1");
        cr_assert(first != NULL && second != NULL, "%s", error.message);
        cr_expect(volume == NULL || volume < second, "%s", error.message);
        both = volume != NULL && first < volume;
    }
    cr_expect(both, "%s", error.message);
    tear_down(&stage);
}

static void expect_saved(struct stage *stage, bool last)
{
    struct server_saved saved[PS_SERVERS_MAX] = {0};
    struct error error = ERROR_INIT;
    unsigned right = 0;
    cr_assert(dispatcher_save(stage->dispatcher, "nowhere", last, saved, &error) == 0, "%s", error.message);
    for (unsigned i = 0; i < SERVERS; i++) {
        right += strcmp(saved[i].name, "this one") == 0;
        ticket_set_release(&saved[i].tickets);
    }
    cr_expect(right == SERVERS);
}

/* There will be another. */
Test(dispatcher, a_save_on_the_way_does_not_wait_for_a_slow_disk, .timeout = 120)
{
    struct stage stage = {0};
    struct server_saved saved[PS_SERVERS_MAX] = {0};
    struct error error = ERROR_INIT;
    set_up(&stage);
    stage.servers[1].refuses = 1;
    cr_assert(begin(&stage, false) == 0);
    cr_expect(dispatcher_save(stage.dispatcher, "nowhere", false, saved, &error) < 0);
    cr_expect(error.kind == ERROR_SYSTEM && error.os_error == 0, "%s", error.message);
    cr_expect(strstr(error.message, "it writes another") != NULL, "%s", error.message);
    expect_saved(&stage, false);
    tear_down(&stage);
}

/* A finished run would fail for good. */
Test(dispatcher, the_final_save_waits_for_a_slow_disk, .timeout = 120)
{
    struct stage stage = {0};
    struct dispatcher_event event;
    set_up(&stage);
    cr_assert(begin(&stage, false) == 0);
    do_tickets(&stage, END);
    do
        cr_assert(dispatcher_next_event(stage.dispatcher, 60000, &event, NULL) == 0 && event.kind != EVENT_NONE);
    while (event.kind != EVENT_OVER);
    stage.servers[0].refuses = 1;
    stage.servers[1].refuses = 2;
    expect_saved(&stage, false);
    tear_down(&stage);
}

Test(dispatcher, the_save_before_a_server_leaves_waits_for_a_slow_disk, .timeout = 120)
{
    struct stage stage = {0};
    set_up(&stage);
    stage.servers[1].refuses = 1;
    cr_assert(begin(&stage, false) == 0);
    expect_saved(&stage, true);
    tear_down(&stage);
}

/* But for one that works. */
Test(dispatcher, a_chief_that_was_asked_to_leave_saves_first, .timeout = 120)
{
    struct stage stage = {0};
    struct server_saved saved[PS_SERVERS_MAX] = {0};
    set_up(&stage);
    cr_assert(begin(&stage, false) == 0);
    dispatcher_cancel(stage.dispatcher);
    cr_expect(dispatcher_save(stage.dispatcher, "nowhere", true, saved, NULL) == 0);
    for (unsigned i = 0; i < SERVERS; i++)
        ticket_set_release(&saved[i].tickets);
    tear_down(&stage);
}
