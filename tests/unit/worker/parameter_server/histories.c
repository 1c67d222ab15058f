/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/memory.h"
#include "worker/parameter_server/dispatcher.h"
#include "worker/parameter_server/server.h"
#include "worker/parameter_server/servers_link.h"
#include "worker/parameter_server/ticket_link.h"

/* Whole crews in one process, over real streams: servers and workers are killed at random moments, pushes are repeated, and in
 * the end every server's parameters say how many updates are in them: each takes 1 off every parameter. */

#define SERVERS 2
#define WORKERS 3
#define ROWS 300
#define ELEMENTS (ROWS * 256 + 3)

static struct parameter_tensor tensors[] = {
    {.name = "w", .shape = {ROWS, 256}, .rank = 2, .offset = 0, .elements = ROWS * 256, .by_rows = true},
    {.name = "b", .shape = {3}, .rank = 1, .offset = ROWS * 256, .elements = 3},
};
static const struct parameter_layout layout = {.tensors = tensors, .tensor_count = 2, .elements = ELEMENTS};
static const struct optimizer_spec plain = {.type = OPTIMIZER_SGD, .learning_rate = 1};

struct snapshot_of_server {
    _Atomic float value; /* a server's thread writes it, the test's reads it */
    int64_t updates;
    struct ticket_set tickets;
};

/* What a worker did, in the order in which it happened. */
struct entry {
    unsigned worker;
    bool done; /* else: took a ticket */
};

struct play {
    enum parameter_server_mode mode;
    bool backup, share_memory;
    bool orderly;    /* servers are asked to leave instead of killed */
    unsigned leaver; /* which one was */
    bool full;       /* the volume */
    bool by_rows;    /* updates are lists of rows: of all of them */
    struct row_set rows[SERVERS];
    int64_t end, staleness;
    struct device *device;
    struct placement placement;
    struct crew_seat seats[SERVERS], chief;
    char hosts[SERVERS + 1][32];
    struct ps_server *servers[SERVERS];
    uint32_t server_epochs[SERVERS];
    struct dispatcher *dispatcher;
    struct snapshot_of_server snapshots[SERVERS];
    int64_t applied_steps;

    pthread_mutex_t lock;
    struct entry *history;
    unsigned history_count;
    atomic_uint random;
};

static void must(bool holds, const char *text)
{
    cr_assert(holds, "%s", text);
}

static unsigned draw(struct play *play, unsigned below)
{
    unsigned value = atomic_fetch_add(&play->random, 1) * 2654435761u;
    value ^= value >> 15;
    value *= 2246822519u;
    return (value ^ (value >> 13)) % below;
}

/* ---------------------------------------------------------------- servers */

static int load(void *context, const char *checkpoint, struct variables *variables, struct error *error)
{
    (void)error;
    struct play *play = context;
    float value = checkpoint[0] ? play->snapshots[variables->options.server].value : 0;
    for (int64_t i = 0; i < variables->elements; i++)
        variables->parameters[i] = value;
    return 0;
}

static int store(void *context, const char *directory, const struct variables *copy, char ret_name[64],
                 int64_t *ret_bytes, uint32_t *ret_crc, struct error *error)
{
    (void)directory, (void)ret_bytes, (void)ret_crc;
    errno = ENOSPC;
    if (((struct play *)context)->full)
        return error_set_errno(error, "cannot write a shard");
    ((struct play *)context)->snapshots[copy->options.server].value = copy->parameters[0];
    snprintf(ret_name, 64, "shard");
    return 0;
}

static void start_server(struct play *play, unsigned number)
{
    struct error error = ERROR_INIT;
    const struct ps_server_options options = {
        .job_uid = "uid",
        .epoch = ++play->server_epochs[number],
        .listen_address = play->hosts[number],
        .port = play->seats[number].port,
        .variables = {.device = play->device,
                      .optimizer = &plain,
                      .placement = &play->placement,
                      .server = number,
                      .shares = play->mode == PARAMETER_SERVER_SYNCHRONOUS ? 2 : 0},
        .digest = 5,
        .backup = play->backup,
        .servers = play->seats,
        .load = load,
        .store = store,
        .context = play,
    };
    for (int tries = 0; ps_server_start(&options, &play->servers[number], &error) < 0; tries++) {
        must(tries < 600, error.message);
        usleep(100000);
        error_clear(&error);
    }
    /* Chosen once; workers read it while a server is away. */
    if (play->seats[number].port == 0)
        play->seats[number].port = ps_server_port(play->servers[number]);
}

/* ---------------------------------------------------------------- workers */

struct one_worker {
    struct play *play;
    unsigned number;
    uint32_t epoch;
    atomic_bool killed;
    struct rpc *rpc;
    struct address_book *book;
    struct ticket_link *tickets;
    struct servers_link *servers;
    atomic_bool ready;
};

static void tick(void *context)
{
    struct one_worker *worker = context;
    ticket_link_tick(worker->tickets);
    servers_link_tick(worker->servers);
}

static void wake(void *context)
{
    rpc_wake(((struct one_worker *)context)->rpc);
}

static void open_worker(struct one_worker *worker)
{
    struct play *play = worker->play;
    struct crew_seat seats[1 + SERVERS] = {play->chief, play->seats[0], play->seats[1]};
    const struct generation generation = {.epoch = worker->epoch};
    cr_assert(rpc_new(tick, worker, 50, &worker->rpc, NULL) == 0);
    cr_assert(address_book_new(seats, 1 + SERVERS, wake, worker, &worker->book, NULL) == 0);
    cr_assert(ticket_link_new(&(struct ticket_link_options){.rpc = worker->rpc,
                                                            .book = worker->book,
                                                            .chief_port = play->chief.port,
                                                            .job_uid = "uid",
                                                            .generation = generation,
                                                            .worker = worker->number},
                              &worker->tickets, NULL) == 0);
    cr_assert(servers_link_new(&(struct servers_link_options){.rpc = worker->rpc,
                                                              .book = worker->book,
                                                              .first_seat = 1,
                                                              .servers = play->seats,
                                                              .placement = &play->placement,
                                                              .elements = ELEMENTS,
                                                              .job_uid = "uid",
                                                              .generation = generation,
                                                              .index = worker->number,
                                                              .digest = 5,
                                                              .share_memory = play->share_memory},
                               &worker->servers, NULL) == 0);
    atomic_store(&worker->ready, true);
    rpc_start_ticks(worker->rpc);
    rpc_wake(worker->rpc);
}

static void close_worker(struct one_worker *worker)
{
    rpc_stop(worker->rpc);
    address_book_free(worker->book);
    rpc_free(worker->rpc);
    servers_link_free(worker->servers);
    ticket_link_free(worker->tickets);
}

static void record(struct play *play, unsigned worker, bool done)
{
    pthread_mutex_lock(&play->lock);
    play->history = memory_resize(play->history, play->history_count + 1, sizeof *play->history);
    play->history[play->history_count++] = (struct entry){worker, done};
    pthread_mutex_unlock(&play->lock);
}

/* False when the worker is over, or was killed on the way. */
static bool do_ticket(struct one_worker *worker)
{
    struct play *play = worker->play;
    struct ticket_grant grant;
    struct ticket_result result = {.targets = 1, .examples = 1, .squares = -1, .server_count = SERVERS};
    bool outdated = false;
    if (ticket_link_next(worker->tickets, &grant, NULL) < 0 || grant.over)
        return false;
    record(play, worker->number, false);
    const struct row_set *rows = play->by_rows ? play->rows : NULL;
    if (servers_link_pull(worker->servers, rows, NULL) < 0)
        return false;
    float *gradients = servers_link_gradients(worker->servers);
    float value = play->mode == PARAMETER_SERVER_SYNCHRONOUS ? 0.5f : 1.0f; /* two shares make one */
    for (int64_t i = 0; i < ELEMENTS; i++)
        gradients[i] = value;
    if (draw(play, 4) == 0)
        usleep(draw(play, 3000));
    struct servers_push push = {.ticket = grant.ticket, .lineage = grant.lineage, .rate = 1, .scale = 1, .rows = rows};
    int repetitions = draw(play, 5) == 0 ? 2 : 1; /* as after a lost acknowledgement */
    for (int i = 0; i < repetitions; i++)
        if (servers_link_push(worker->servers, &push, &outdated, result.incarnations, NULL) < 0)
            return false;
    if (atomic_load(&worker->killed)) /* its update is in, and nobody knows */
        return false;
    if (!outdated)
        record(play, worker->number, true);
    ticket_link_done(worker->tickets, outdated ? NULL : &result);
    return true;
}

static void *work(void *context)
{
    struct one_worker *worker = context;
    open_worker(worker);
    while (do_ticket(worker))
        ;
    close_worker(worker);
    return NULL;
}

struct crew_of_workers {
    struct one_worker *workers[WORKERS];
    pthread_t threads[WORKERS];
};

static void start_worker(struct play *play, struct crew_of_workers *crew, unsigned number, uint32_t epoch)
{
    crew->workers[number] = memory_allocate(1, sizeof **crew->workers);
    crew->workers[number]->play = play;
    crew->workers[number]->number = number;
    crew->workers[number]->epoch = epoch;
    cr_assert(pthread_create(&crew->threads[number], NULL, work, crew->workers[number]) == 0);
}

static void replace_worker(struct play *play, struct crew_of_workers *crew, unsigned number)
{
    struct one_worker *worker = crew->workers[number];
    uint32_t epoch = worker->epoch;
    while (!atomic_load(&worker->ready))
        usleep(1000);
    atomic_store(&worker->killed, true);
    ticket_link_cancel(worker->tickets);
    if (draw(play, 2))
        servers_link_cancel(worker->servers);
    pthread_join(crew->threads[number], NULL);
    free(worker);
    start_worker(play, crew, number, epoch + 1);
}

/* ---------------------------------------------------------------- the chief */

static double rate(void *context, int64_t step)
{
    (void)context, (void)step;
    return 1;
}

/* What each server starts from: its snapshot; in the synchronous mode all go back, so that they agree. */
static int begin(struct play *play, bool first)
{
    struct server_standing standings[PS_SERVERS_MAX];
    struct server_start starts[PS_SERVERS_MAX] = {0};
    struct dispatcher_plan plan = {.starts = starts, .keeps_tickets = !first, .base_step = 0};
    bool synchronous = play->mode == PARAMETER_SERVER_SYNCHRONOUS, missing = false;
    int64_t lost;
    cr_assert(dispatcher_await_servers(play->dispatcher, standings, NULL) == 0);
    for (unsigned i = 0; i < SERVERS; i++) {
        missing |= !standings[i].holds_state;
        starts[i].needed = !standings[i].holds_state;
        if (standings[i].lineage > plan.lineage)
            plan.lineage = standings[i].lineage;
    }
    for (unsigned i = 0; i < SERVERS; i++) {
        if (missing && synchronous && !play->backup)
            starts[i].needed = true;
        starts[i].path = first ? "" : play->backup ? SERVER_START_BACKUP : "snapshot";
        starts[i].tickets = play->snapshots[i].tickets; /* borrowed */
        starts[i].updates = play->snapshots[i].updates;
    }
    plan.fetches_only = !first && missing && play->backup;
    if (missing && synchronous && !plan.fetches_only) {
        plan.keeps_tickets = false;
        plan.lineage++;
        plan.step = play->snapshots[0].updates;
        plan.finished = play->snapshots[0].tickets;
    }
    int result = dispatcher_begin(play->dispatcher, &plan, &lost, NULL);
    for (unsigned i = 0; i < SERVERS; i++)
        server_standing_release(&standings[i]);
    return result;
}

static void take_snapshot(struct play *play)
{
    struct server_saved saved[PS_SERVERS_MAX] = {0};
    if (dispatcher_save(play->dispatcher, "nowhere", saved, NULL) < 0)
        return;
    for (unsigned i = 0; i < SERVERS; i++) {
        play->snapshots[i].updates = saved[i].updates;
        if (play->mode == PARAMETER_SERVER_SYNCHRONOUS) /* staged shares are no part of it */
            ticket_set_reset(&play->snapshots[i].tickets, saved[i].updates * 2);
        else
            ticket_set_copy(&play->snapshots[i].tickets, &saved[i].tickets);
        ticket_set_release(&saved[i].tickets);
    }
}

/* A server that was asked to leave: all are saved, and its successor goes on from that. */
static void see_off(struct play *play)
{
    struct error error = ERROR_INIT;
    take_snapshot(play);
    dispatcher_dismiss(play->dispatcher);
    cr_expect(ps_server_wait(play->servers[play->leaver], &error) < 0 && error.kind == ERROR_CANCELLED);
    ps_server_free(play->servers[play->leaver]);
    start_server(play, play->leaver);
}

static bool follow(struct play *play, struct crew_of_workers *crew, unsigned kills_every, unsigned *kills)
{
    bool kills_server = false; /* what is told until that is noticed kills nobody */
    for (time_t moved = time(NULL);;) {
        struct dispatcher_event event;
        struct error error = ERROR_INIT;
        must(dispatcher_next_event(play->dispatcher, 1000, &event, &error) == 0, error.message);
        must(time(NULL) - moved < 120, "nothing has moved for two minutes");
        if (event.kind != EVENT_NONE)
            moved = time(NULL);
        if (event.kind == EVENT_OVER)
            return true;
        if (event.kind == EVENT_SERVER_LOST)
            return false;
        if (event.kind == EVENT_SERVER_PARTS)
            see_off(play);
        if (event.kind != EVENT_STEP || kills_every == 0 || event.step % (int64_t)kills_every != 0)
            continue;
        if (!play->orderly && draw(play, 2) == 0)
            take_snapshot(play);
        if (event.step * 2 > play->end * 9 / 10 || kills_server)
            continue;
        ++*kills;
        unsigned victim = draw(play, SERVERS + WORKERS);
        if (play->orderly) {
            play->leaver = victim % SERVERS;
            ps_server_leave(play->servers[play->leaver]);
        } else if (victim >= SERVERS) {
            replace_worker(play, crew, victim - SERVERS);
        } else {
            ps_server_free(play->servers[victim]);
            start_server(play, victim);
            kills_server = true;
        }
    }
}

static void run(struct play *play, unsigned kills_every, unsigned *ret_kills)
{
    struct crew_of_workers crew;
    struct error error = ERROR_INIT;
    const struct dispatcher_options options = {
        .job_uid = "uid",
        .generation = {.epoch = 1},
        .listen_address = play->hosts[SERVERS],
        .servers = play->seats,
        .server_count = SERVERS,
        .digest = 5,
        .dispenser = {.mode = play->mode, .tickets_per_step = 2, .staleness = play->staleness, .end = play->end},
        .rate = rate,
    };
    cr_assert(dispatcher_start(&options, &play->dispatcher, &error) == 0, "%s", error.message);
    play->chief.port = dispatcher_port(play->dispatcher);
    for (unsigned i = 0; i < WORKERS; i++)
        start_worker(play, &crew, i, 1);
    *ret_kills = 0;
    bool first = true;
    do {
        while (begin(play, first) < 0) /* lost again, or back from the backup: look anew */
            ;
        first = false;
    } while (!follow(play, &crew, kills_every, ret_kills));
    for (unsigned i = 0; i < WORKERS; i++) {
        pthread_join(crew.threads[i], NULL);
        free(crew.workers[i]);
    }
}

static void list_all_rows(struct row_set *rows)
{
    row_set_clear(rows);
    for (uint32_t row = 0; row < ROWS / SERVERS; row++)
        must(row_set_add(rows, row), "a row more");
}

static void set_up(struct play *play, unsigned seed)
{
    cr_assert(device_open(&(struct device_options){.threads = 1}, &play->device, NULL) == 0);
    placement_init(&play->placement, &layout, SERVERS);
    for (unsigned i = 0; i < SERVERS; i++)
        list_all_rows(&play->rows[i]);
    pthread_mutex_init(&play->lock, NULL);
    atomic_store(&play->random, seed);
    for (unsigned i = 0; i <= SERVERS; i++)
        snprintf(play->hosts[i], sizeof play->hosts[i], "127.%u.%u.%u", 100 + (unsigned)getpid() % 100,
                 (unsigned)getpid() / 100 % 250, i + 1);
    for (unsigned i = 0; i < SERVERS; i++)
        play->seats[i] = (struct crew_seat){.role = "ps", .index = i, .host = play->hosts[i]};
    for (unsigned i = 0; i < SERVERS; i++)
        start_server(play, i);
    play->chief = (struct crew_seat){.role = "worker", .host = play->hosts[SERVERS]};
}

/* How many updates are in a server's parameters: all of them must agree. */
static int64_t updates_in(struct play *play, unsigned number, struct dispatcher *dispatcher)
{
    struct server_saved saved[PS_SERVERS_MAX] = {0};
    cr_assert(dispatcher_save(dispatcher, "nowhere", saved, NULL) == 0);
    for (unsigned i = 0; i < SERVERS; i++)
        ticket_set_release(&saved[i].tickets);
    return (int64_t)lroundf(-play->snapshots[number].value);
}

static void tear_down(struct play *play)
{
    dispatcher_finish(play->dispatcher);
    dispatcher_free(play->dispatcher);
    for (unsigned i = 0; i < SERVERS; i++) {
        ps_server_free(play->servers[i]);
        ticket_set_release(&play->snapshots[i].tickets);
        row_set_release(&play->rows[i]);
    }
    placement_release(&play->placement);
    device_close(play->device);
    free(play->history);
}

/* Successors that have joined and have no state yet: a save fails at once, for they would never answer. */
Test(histories, a_save_does_not_wait_for_servers_without_a_state, .timeout = 60)
{
    struct play play = {.mode = PARAMETER_SERVER_ASYNC, .end = 1200};
    struct server_standing standings[PS_SERVERS_MAX];
    struct server_saved saved[PS_SERVERS_MAX] = {0};
    struct error error = ERROR_INIT;
    set_up(&play, 5);
    const struct dispatcher_options options = {
        .job_uid = "uid",
        .generation = {.epoch = 1},
        .listen_address = play.hosts[SERVERS],
        .servers = play.seats,
        .server_count = SERVERS,
        .digest = 5,
        .dispenser = {.mode = play.mode, .tickets_per_step = 2, .end = play.end},
        .rate = rate,
    };
    cr_assert(dispatcher_start(&options, &play.dispatcher, &error) == 0, "%s", error.message);
    cr_assert(dispatcher_await_servers(play.dispatcher, standings, &error) == 0, "%s", error.message);
    cr_expect(dispatcher_misses_a_server(play.dispatcher));
    cr_expect(dispatcher_save(play.dispatcher, "nowhere", saved, &error) < 0 && error.kind == ERROR_UNAVAILABLE, "%s",
              error.message);
    for (unsigned i = 0; i < SERVERS; i++)
        server_standing_release(&standings[i]);
    tear_down(&play);
}

Test(histories, without_a_backup_what_is_lost_is_counted_exactly)
{
    struct play play = {.mode = PARAMETER_SERVER_ASYNC, .end = 1200};
    unsigned kills;
    set_up(&play, 11);
    run(&play, 40, &kills);
    int64_t missing = 0;
    for (unsigned i = 0; i < SERVERS; i++)
        missing += play.end - updates_in(&play, i, play.dispatcher);
    cr_expect(kills >= 8 && missing == dispatcher_lost(play.dispatcher),
              "%lld updates are missing after %u kills, %lld counted", (long long)missing, kills,
              (long long)dispatcher_lost(play.dispatcher));
    struct server_saved saved[PS_SERVERS_MAX] = {0};
    struct error error = ERROR_INIT;
    play.full = true;
    cr_expect(dispatcher_save(play.dispatcher, "nowhere", saved, &error) < 0);
    cr_expect(error.kind == ERROR_NO_SPACE && error.os_error == ENOSPC, "%s", error.message);
    tear_down(&play);
}

static void expect_nothing_lost(enum parameter_server_mode mode, bool share_memory)
{
    struct play play = {.mode = mode, .share_memory = share_memory, .orderly = true, .end = 1200};
    bool synchronous = mode == PARAMETER_SERVER_SYNCHRONOUS;
    unsigned kills;
    set_up(&play, 31);
    run(&play, 40, &kills);
    for (unsigned i = 0; i < SERVERS; i++)
        cr_expect(updates_in(&play, i, play.dispatcher) == (synchronous ? play.end / 2 : play.end), "ps %u", i);
    cr_expect(kills >= 8 && dispatcher_lost(play.dispatcher) == 0, "%u left, %lld updates are lost", kills,
              (long long)dispatcher_lost(play.dispatcher));
    tear_down(&play);
}

Test(histories, servers_that_are_asked_to_leave_lose_nothing)
{
    expect_nothing_lost(PARAMETER_SERVER_ASYNC, true);
}

Test(histories, synchronous_servers_that_are_asked_to_leave_lose_nothing)
{
    expect_nothing_lost(PARAMETER_SERVER_SYNCHRONOUS, false);
}

static void expect_every_update(bool share_memory, bool by_rows, unsigned seed)
{
    struct play play = {
        .mode = PARAMETER_SERVER_ASYNC, .backup = true, .share_memory = share_memory, .by_rows = by_rows, .end = 1200};
    unsigned kills;
    set_up(&play, seed);
    run(&play, 40, &kills);
    for (unsigned i = 0; i < SERVERS; i++)
        cr_expect(updates_in(&play, i, play.dispatcher) == play.end, "ps %u has %lld of %lld updates", i,
                  (long long)updates_in(&play, i, play.dispatcher), (long long)play.end);
    cr_expect(kills >= 8 && dispatcher_lost(play.dispatcher) == 0);
    tear_down(&play);
}

Test(histories, with_a_backup_every_update_counts_exactly_once)
{
    expect_every_update(true, false, 23);
}

Test(histories, with_a_backup_rows_count_exactly_once)
{
    expect_every_update(false, true, 29);
}

static void expect_synchronous(bool backup, bool by_rows, unsigned seed)
{
    struct play play = {.mode = PARAMETER_SERVER_SYNCHRONOUS, .backup = backup, .by_rows = by_rows, .end = 800};
    unsigned kills;
    set_up(&play, seed);
    run(&play, 40, &kills);
    for (unsigned i = 0; i < SERVERS; i++)
        cr_expect(updates_in(&play, i, play.dispatcher) == play.end / 2, "ps %u took %lld steps of %lld", i,
                  (long long)updates_in(&play, i, play.dispatcher), (long long)play.end / 2);
    cr_expect(kills >= 6);
    tear_down(&play);
}

Test(histories, synchronous_steps_count_once_through_rollbacks)
{
    expect_synchronous(false, false, 5);
}

Test(histories, synchronous_steps_count_once_with_a_backup)
{
    expect_synchronous(true, true, 7);
}

/* A worker that takes a ticket is at most `staleness` ahead of what the others had finished by then. */
static void check_bound(const struct play *play)
{
    int64_t done[WORKERS] = {0}, furthest = 0;
    for (unsigned i = 0; i < play->history_count; i++) {
        const struct entry *entry = &play->history[i];
        if (entry->done) {
            done[entry->worker]++;
            continue;
        }
        for (unsigned other = 0; other < WORKERS; other++)
            if (done[entry->worker] - done[other] > furthest)
                furthest = done[entry->worker] - done[other];
    }
    cr_expect(furthest <= play->staleness, "a worker was %lld ahead, the bound is %lld", (long long)furthest,
              (long long)play->staleness);
    cr_expect(furthest > 0, "nobody was ever ahead: the bound was not tried");
}

Test(histories, the_bound_is_never_exceeded)
{
    struct play play = {.mode = PARAMETER_SERVER_BOUNDED_STALENESS, .staleness = 2, .end = 600};
    unsigned kills;
    set_up(&play, 3);
    run(&play, 0, &kills);
    check_bound(&play);
    for (unsigned i = 0; i < SERVERS; i++)
        cr_expect(updates_in(&play, i, play.dispatcher) == play.end);
    tear_down(&play);
}
