/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/lock.h"
#include "common/memory.h"
#include "tests/unit/worker/parameter_server/history_clocks.h"
#include "worker/parameter_server/dispatcher.h"
#include "worker/parameter_server/recovery.h"
#include "worker/parameter_server/server.h"
#include "worker/parameter_server/servers_link.h"
#include "worker/parameter_server/ticket_link.h"

/* Whole crews in one process, over real streams: servers and workers are killed at random moments, pushes are repeated, and in
 * the end every server's parameters say how many updates are in them: each takes 1 off every parameter. */

#define SIGHT 4 /* steps */
#define SERVERS_MAX 3
#define WORKERS HISTORY_WORKERS
/* As few as are still cut into servers' parts that go on bulk connections of their own: each value costs processor time. */
#define ROWS 270
#define ELEMENTS (ROWS * 256 + 3)

static struct parameter_tensor tensors[] = {
    {.name = "w", .shape = {ROWS, 256}, .rank = 2, .offset = 0, .elements = ROWS * 256, .by_rows = true},
    {.name = "b", .shape = {3}, .rank = 1, .offset = ROWS * 256, .elements = 3},
};
static const struct parameter_layout layout = {.tensors = tensors, .tensor_count = 2, .elements = ELEMENTS};
static const struct optimizer_spec plain = {.type = OPTIMIZER_SGD, .learning_rate = 1};

struct snapshot_of_server {
    _Atomic float written; /* by a server's thread, for the save under way */
    /* Values of the last complete save; a server's thread loads both. */
    _Atomic float value;
    atomic_llong updates;
    int64_t empty;
    struct ticket_set tickets;
};

struct play {
    enum parameter_server_mode mode;
    unsigned server_count; /* 0: 2 */
    bool share_memory;
    bool orderly;  /* servers are asked to leave instead of killed */
    bool together; /* all of them, at times one only while the other is being saved */
    atomic_bool asks_while_saving;
    unsigned departed; /* seen off so far */
    bool follows;      /* the chief goes with them, and another finds their successors */
    bool full;         /* the volume */
    bool leaderless;   /* the chief is killed too, at times with a server */
    bool slow;    /* its successor takes longer to begin, at times, than it waits for workers, of which one is new */
    bool freezes; /* workers stop for longer than the chief's patience, and return */
    atomic_bool
        straggles; /* worker 0 holds its first ticket until the others have come as far as they may, and stand */
    /* workers do not run ahead of the thread that disturbs them at steps that it has seen */
    atomic_llong awaited_step;
    bool late;           /* a server is killed once all tickets are done */
    bool by_rows;        /* updates are lists of rows: of all of them */
    int64_t empty_every; /* one ticket of this many has a share without examples; 0: none has */
    struct row_set rows[SERVERS_MAX];
    int64_t end, staleness;
    unsigned spare; /* workers; worker 0 then holds its first ticket until somebody else has done it */
    struct device *device;
    struct placement placement;
    struct crew_seat seats[SERVERS_MAX], chief;
    char hosts[SERVERS_MAX + 1][32];
    struct ps_server *servers[SERVERS_MAX];
    uint32_t server_incarnations[SERVERS_MAX];
    struct dispatcher *dispatcher;
    uint32_t chief_incarnation;
    bool begun; /* tickets have flowed under this chief */
    uint32_t lineage;
    struct snapshot_of_server snapshots[SERVERS_MAX];
    bool has_snapshot;
    atomic_llong recorded[SERVERS_MAX]; /* the same, from the servers' records */
    int64_t in_the_end[SERVERS_MAX];    /* how many updates are in its parameters */

    pthread_mutex_t lock;
    struct history_entry *history;
    unsigned history_count;
    atomic_uint random;
};

static void must(bool holds, const char *text)
{
    cr_assert(holds, "%s", text);
}

/* The thread sanitizer looks at values one by one where a loop goes over them, and as one stretch where memcpy or memcmp do. */
static void fill(float *values, int64_t count, float value)
{
    static const int64_t block = 256;
    int64_t filled = count < block ? count : block;
    for (int64_t i = 0; i < filled; i++)
        values[i] = value;
    for (int64_t part; filled < count; filled += part) {
        part = count - filled < filled ? count - filled : filled;
        memcpy(values + filled, values, (size_t)part * sizeof *values);
    }
}

static bool are_alike(const float *values, int64_t count)
{
    return values[0] == values[0] && memcmp(values, values + 1, (size_t)(count - 1) * sizeof *values) == 0;
}

static unsigned draw(struct play *play, unsigned below)
{
    unsigned value = atomic_fetch_add(&play->random, 1) * 2654435761u;
    value ^= value >> 15;
    value *= 2246822519u;
    return (value ^ (value >> 13)) % below;
}

static bool is_empty(const struct play *play, int64_t ticket)
{
    return play->empty_every > 0 && ticket % play->empty_every == play->empty_every - 1;
}

static int64_t count_empty(const struct play *play)
{
    return play->empty_every > 0 ? play->end / play->empty_every : 0;
}

/* ---------------------------------------------------------------- servers */

static int load(void *context, const char *checkpoint, struct variables *variables, struct error *error)
{
    (void)error;
    struct play *play = context;
    float value = checkpoint[0] ? play->snapshots[variables->options.server].value : 0;
    fill(variables->parameters, variables->elements, value);
    atomic_store(&play->recorded[variables->options.server],
                 checkpoint[0] ? play->snapshots[variables->options.server].updates : 0);
    return 0;
}

static int store(void *context, const char *directory, const struct variables *copy, char ret_name[64],
                 int64_t *ret_bytes, uint32_t *ret_crc, struct error *error)
{
    (void)directory, (void)ret_bytes, (void)ret_crc;
    must(are_alike(copy->parameters, copy->elements), "an update is in some parameters of a server, not in all");
    errno = ENOSPC;
    if (((struct play *)context)->full)
        return error_set_errno(error, "cannot write a shard");
    struct play *play = context;
    play->snapshots[copy->options.server].written = copy->parameters[0];
    if (copy->options.server == 0 && atomic_exchange(&play->asks_while_saving, false)) {
        ps_server_leave(play->servers[1]);
        usleep(200000); /* the chief knows of it now, most likely; if not, it is asked a little later */
    }
    snprintf(ret_name, 64, "shard");
    return 0;
}

/* Follows how many updates are in each server's values, from what `load` has put there. */
static void witness_server(void *context, enum server_fate fate, uint32_t lineage, int64_t number, const char *whose)
{
    struct play *play = context;
    unsigned server = 0;
    (void)lineage;
    if (fate != SERVER_APPLIED || is_empty(play, number))
        return;
    must(sscanf(whose, "ps-%u-", &server) == 1 && server < play->server_count, whose);
    atomic_fetch_add(&play->recorded[server], 1);
}

static void start_server(struct play *play, unsigned number)
{
    struct error error = ERROR_INIT;
    const struct ps_server_options options = {
        .job_uid = "uid",
        .generation = {.incarnation = ++play->server_incarnations[number]},
        .listen_address = play->hosts[number],
        .port = play->seats[number].port,
        .variables = {.device = play->device,
                      .optimizer = &plain,
                      .placement = &play->placement,
                      .server = number,
                      .shares = play->mode == PARAMETER_SERVER_SYNCHRONOUS ? 2 : 0,
                      .refuses_late = play->spare > 0,
                      .staleness = play->staleness},
        .digest = 5,
        .load = load,
        .store = store,
        .witness = witness_server,
        .context = play,
    };
    for (int tries = 0; ps_server_start(&options, &play->servers[number], &error) < 0; tries++) {
        must(tries < 600, error.message);
        usleep(100000);
        error_clear(&error);
    }
}

/* ---------------------------------------------------------------- workers */

struct one_worker {
    struct play *play;
    unsigned number;
    uint32_t incarnation;
    atomic_bool killed;
    atomic_llong frozen_until_ms;
    struct rpc *rpc;
    struct address_book *book;
    struct ticket_link *tickets;
    struct servers_link *servers;
    atomic_bool ready;
    pthread_mutex_t lock; /* guards `closes` */
    bool closes;
};

/* Nothing of a frozen process goes on. */
static void thaw(struct one_worker *worker)
{
    while (clock_monotonic_ms() < atomic_load(&worker->frozen_until_ms))
        usleep(1000);
}

/* For longer than the chief's patience in such a play. */
static void freeze(struct one_worker *worker)
{
    atomic_store(&worker->frozen_until_ms, clock_monotonic_ms() + 2200);
}

static void tick(void *context)
{
    struct one_worker *worker = context;
    thaw(worker);
    ticket_link_tick(worker->tickets);
    servers_link_tick(worker->servers);
    if (ticket_link_is_over(worker->tickets)) /* as ps_worker.c does it */
        servers_link_cancel(worker->servers);
}

static void wake(void *context)
{
    rpc_wake(((struct one_worker *)context)->rpc);
}

static void open_worker(struct one_worker *worker)
{
    struct play *play = worker->play;
    struct crew_seat seats[1 + SERVERS_MAX] = {play->chief, play->seats[0], play->seats[1], play->seats[2]};
    const struct generation generation = {.incarnation = worker->incarnation};
    cr_assert(rpc_new(tick, worker, 50, &worker->rpc, NULL) == 0);
    cr_assert(address_book_new(seats, 1 + play->server_count, wake, worker, &worker->book, NULL) == 0);
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

/* It may end by itself just when it is to be killed: its links are not there to be cancelled any more. */
static void close_worker(struct one_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    worker->closes = true;
    pthread_mutex_unlock(&worker->lock);
    rpc_stop(worker->rpc);
    address_book_free(worker->book);
    rpc_free(worker->rpc);
    servers_link_free(worker->servers);
    ticket_link_free(worker->tickets);
}

static void record(struct play *play, int what, unsigned worker, int64_t ticket)
{
    SCOPED_LOCK(&play->lock);
    play->history = memory_resize(play->history, play->history_count + 1, sizeof *play->history);
    play->history[play->history_count++] = (struct history_entry){what, worker, ticket, clock_monotonic_ms()};
}

static void witness(void *context, enum ticket_fate fate, unsigned worker, int64_t ticket)
{
    record(context, (int)fate, worker, ticket);
}

static struct clocks_found look_at_clocks(struct play *play)
{
    SCOPED_LOCK(&play->lock);
    return history_clocks_read(play->history, play->history_count);
}

/* Until the others are as far ahead as the bound lets them, and none has gone on for a while: where the bound were larger, they
 * would. Once in a play. */
static void straggle(struct one_worker *worker)
{
    struct play *play = worker->play;
    unsigned before = 0;
    if (worker->number != 0 || !atomic_exchange(&play->straggles, false))
        return;
    for (int looks = 0; looks < 300 && !ticket_link_is_over(worker->tickets); looks++) {
        usleep(200000);
        pthread_mutex_lock(&play->lock);
        unsigned count = play->history_count;
        pthread_mutex_unlock(&play->lock);
        if (count == before && look_at_clocks(play).furthest >= play->staleness)
            return;
        before = count;
        if (!atomic_load(&worker->killed))
            continue;
        atomic_store(&play->straggles, true); /* its successor does */
        return;
    }
}

static bool is_done_by_another(struct play *play, const struct one_worker *worker, int64_t ticket)
{
    bool done = false;
    SCOPED_LOCK(&play->lock);
    for (unsigned i = 0; i < play->history_count; i++)
        done |= play->history[i].what == TICKET_DONE && play->history[i].worker != worker->number &&
                play->history[i].ticket == ticket;
    return done;
}

/* Its update comes when the others are far beyond it. Once in a play. */
static void fall_behind(struct one_worker *worker, int64_t ticket)
{
    struct play *play = worker->play;
    if (worker->number != 0 || !atomic_exchange(&play->straggles, false))
        return;
    for (int looks = 0; looks < 60000 && !ticket_link_is_over(worker->tickets); looks++) {
        if (is_done_by_another(play, worker, ticket) || atomic_load(&worker->killed))
            return;
        usleep(1000);
    }
}

/* For a while only: a new chief may not have told of any step yet. */
static void keep_in_sight(const struct one_worker *worker, int64_t ticket)
{
    for (int i = 0; i < 500 && ticket / 2 > atomic_load(&worker->play->awaited_step) && !atomic_load(&worker->killed);
         i++)
        usleep(1000);
}

/* Each update subtracts the same from all values of a server. */
static void expect_values_of_one_moment(const struct one_worker *worker)
{
    const struct placement *placement = &worker->play->placement;
    const float *values = servers_link_values(worker->servers);
    for (unsigned server = 0; server < placement->server_count; server++) {
        float first = values[placement->runs[server][0].offset];
        bool same = true;
        for (unsigned i = 0; i < placement->run_counts[server]; i++) {
            const float *run = values + placement->runs[server][i].offset;
            same &= run[0] == first && are_alike(run, placement->runs[server][i].elements);
        }
        must(same, "values of two moments were handed out");
    }
}

/* As ps_worker.c does it. */
static bool pull(struct one_worker *worker, uint32_t lineage, const struct row_set *rows)
{
    servers_link_follow(worker->servers, lineage);
    if (!servers_link_is_fresh(worker->servers, lineage) && servers_link_pull(worker->servers, rows, NULL) < 0)
        return false;
    expect_values_of_one_moment(worker);
    return true;
}

/* False when the worker is over, or was killed on the way. */
static bool do_ticket(struct one_worker *worker)
{
    struct play *play = worker->play;
    struct ticket_grant grant;
    struct ticket_result result = {.squares = -1, .server_count = play->server_count};
    bool outdated = false;
    if (ticket_link_next(worker->tickets, &grant, NULL) < 0 || grant.over)
        return false;
    record(play, WORK_BEGUN, worker->number, grant.ticket);
    result.targets = result.examples = !is_empty(play, grant.ticket);
    if (play->spare > 0)
        fall_behind(worker, grant.ticket);
    else
        straggle(worker);
    const struct row_set *rows = play->by_rows ? play->rows : NULL;
    if (!pull(worker, grant.lineage, rows))
        return false;
    float *gradients = servers_link_gradients(worker->servers);
    fill(gradients, ELEMENTS, play->mode == PARAMETER_SERVER_SYNCHRONOUS ? 0.5f : 1.0f); /* two shares make one */
    if (draw(play, 4) == 0)
        usleep(draw(play, draw(play, 8) == 0 ? 30000 : 3000));
    thaw(worker);
    keep_in_sight(worker, grant.ticket);
    struct servers_push push = {.ticket = grant.ticket,
                                .clock = grant.clock,
                                .lineage = grant.lineage,
                                .rate = 1,
                                .scale = (double)result.examples,
                                .rows = rows};
    push.pull = play->mode == PARAMETER_SERVER_ASYNC && rows == NULL;
    int repetitions = draw(play, 5) == 0 ? 2 : 1; /* as after a lost acknowledgement */
    for (int i = 0; i < repetitions; i++)
        if (servers_link_push(worker->servers, &push, &outdated, result.nonces, NULL) < 0)
            return false;
    if (atomic_load(&worker->killed)) /* its update is in, and nobody knows */
        return false;
    if (!outdated)
        record(play, WORK_PUSHED, worker->number, grant.ticket);
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

static void start_worker(struct play *play, struct crew_of_workers *crew, unsigned number, uint32_t incarnation)
{
    crew->workers[number] = memory_allocate(1, sizeof **crew->workers);
    pthread_mutex_init(&crew->workers[number]->lock, NULL);
    crew->workers[number]->play = play;
    crew->workers[number]->number = number;
    crew->workers[number]->incarnation = incarnation;
    record(play, WORKER_STARTED, number, -1);
    cr_assert(pthread_create(&crew->threads[number], NULL, work, crew->workers[number]) == 0);
}

/* `cuts`: it does not wait for servers any more, which nobody may lead. */
static void replace_worker(struct play *play, struct crew_of_workers *crew, unsigned number, bool cuts)
{
    struct one_worker *worker = crew->workers[number];
    uint32_t incarnation = worker->incarnation;
    while (!atomic_load(&worker->ready))
        usleep(1000);
    atomic_store(&worker->killed, true);
    const bool both = draw(play, 2) || cuts;
    pthread_mutex_lock(&worker->lock);
    if (!worker->closes)
        ticket_link_cancel(worker->tickets);
    if (!worker->closes && both)
        servers_link_cancel(worker->servers);
    pthread_mutex_unlock(&worker->lock);
    pthread_join(crew->threads[number], NULL);
    pthread_mutex_destroy(&worker->lock);
    free(worker);
    start_worker(play, crew, number, incarnation + 1);
}

/* ---------------------------------------------------------------- the chief */

static double rate(void *context, int64_t step)
{
    (void)context, (void)step;
    return 1;
}

static bool has_no_examples(void *context, const struct dispatcher_plan *plan, int64_t ticket)
{
    (void)plan;
    return is_empty(context, ticket);
}

static void start_chief(struct play *play)
{
    struct error error = ERROR_INIT;
    const struct dispatcher_options options = {
        .job_uid = "uid",
        .generation = {.incarnation = ++play->chief_incarnation},
        .listen_address = play->hosts[play->server_count],
        .port = play->chief.port,
        .servers = play->seats,
        .server_count = play->server_count,
        .digest = 5,
        .scheduler = {.mode = play->mode,
                      .tickets_per_step = 2,
                      .staleness = play->staleness,
                      .backup_workers = play->spare,
                      .end = play->end},
        .rate = rate,
        .is_empty = has_no_examples,
        .witness = witness,
        .context = play,
        .death_ms = play->freezes ? 1500 : 0,
    };
    record(play, CHIEF_STARTED, 0, -1); /* what is pushed from here on it need not know of */
    for (int tries = 0; dispatcher_start(&options, &play->dispatcher, &error) < 0; tries++) {
        must(tries < 600, error.message);
        usleep(100000);
        error_clear(&error);
    }
    play->chief.port = dispatcher_port(play->dispatcher);
    play->begun = false;
}

/* The last snapshot that was whole, as a checkpoint. */
static struct recovery_source find_source(const struct play *play)
{
    struct recovery_source source = {.path = memory_copy_string(play->has_snapshot ? "snapshot" : "")};
    bool synchronous = play->mode == PARAMETER_SERVER_SYNCHRONOUS;
    source.step = INT64_MAX;
    for (unsigned i = 0; i < play->server_count; i++) {
        const struct snapshot_of_server *snapshot = &play->snapshots[i];
        int64_t step = synchronous ? snapshot->updates : snapshot->tickets.low / 2;
        source.step = step < source.step ? step : source.step;
        source.updates[i] = snapshot->updates;
        source.empty[i] = snapshot->empty;
        ticket_set_copy(&source.tickets[i], &snapshot->tickets);
    }
    source.server_count = play->server_count;
    return source;
}

/* As a chief does it. */
static int begin(struct play *play)
{
    const struct recovery_options options = {.mode = play->mode,
                                             .server_count = play->server_count,
                                             .per_step = 2,
                                             .chief_incarnation = play->chief_incarnation,
                                             .begun = play->begun,
                                             .lineage = play->lineage};
    struct server_standing standings[PS_SERVERS_MAX];
    struct server_start *starts = memory_allocate(PS_SERVERS_MAX, sizeof *starts);
    struct dispatcher_plan plan;
    struct recovery_source source = find_source(play);
    int64_t lost;
    cr_assert(dispatcher_await_servers(play->dispatcher, standings, NULL) == 0);
    recovery_plan(&options, recovery_choose(&options, standings), standings, &source, starts, &plan);
    if (plan.lineage != play->lineage)
        record(play, CREW_GOES_BACK, 0, -1);
    int result = dispatcher_begin(play->dispatcher, &plan, &lost, NULL);
    if (result == 0) {
        play->begun = true;
        play->lineage = plan.lineage;
    }
    for (unsigned i = 0; i < play->server_count; i++)
        server_standing_release(&standings[i]);
    recovery_plan_release(&plan, starts);
    recovery_source_release(&source);
    free(starts);
    return result;
}

static bool take_snapshot(struct play *play, bool last)
{
    struct server_saved saved[PS_SERVERS_MAX] = {0};
    if (dispatcher_save(play->dispatcher, "nowhere", last, saved, NULL) < 0)
        return false;
    play->has_snapshot = true;
    for (unsigned i = 0; i < play->server_count; i++) {
        play->snapshots[i].value = play->snapshots[i].written;
        play->snapshots[i].updates = saved[i].updates;
        play->snapshots[i].empty = saved[i].empty;
        if (play->mode == PARAMETER_SERVER_SYNCHRONOUS) /* staged shares are no part of it */
            ticket_set_reset(&play->snapshots[i].tickets, saved[i].updates * 2);
        else
            ticket_set_copy(&play->snapshots[i].tickets, &saved[i].tickets);
        ticket_set_release(&saved[i].tickets);
    }
    return true;
}

static void depart(struct play *play, unsigned number)
{
    struct error error = ERROR_INIT;
    must(ps_server_wait(play->servers[number], &error) < 0 && error.kind == ERROR_CANCELLED, error.message);
    ps_server_free(play->servers[number]);
    play->servers[number] = NULL;
    play->departed++;
}

/* Servers that were asked to leave: all are saved, and their successors go on from that. True: another chief must begin. */
static bool release_leaving(struct play *play)
{
    uint64_t gone;
    if (dispatcher_leaving(play->dispatcher) == 0)
        return false;
    do
        if (!take_snapshot(play, true)) /* one has gone; the others wait for its successor */
            return false;
    while (!dispatcher_save_and_release(play->dispatcher, &gone));
    for (unsigned i = 0; i < play->server_count; i++)
        if (gone >> i & 1)
            depart(play, i);
    if (play->follows) {
        dispatcher_free(play->dispatcher);
        start_chief(play);
    }
    for (unsigned i = 0; i < play->server_count; i++)
        if (play->servers[i] == NULL)
            start_server(play, i);
    return play->follows;
}

static void kill_server(struct play *play, unsigned number)
{
    ps_server_free(play->servers[number]);
    start_server(play, number);
}

/* Kills one server, all, or none. */
static void kill_servers(struct play *play, unsigned victim)
{
    for (unsigned i = 0; i < play->server_count; i++)
        if (victim == i || victim == play->server_count)
            kill_server(play, i);
}

/* A server goes with it, before or after, or all, or none. */
static void kill_chief(struct play *play)
{
    unsigned victim = draw(play, play->server_count + 2), before = draw(play, 2);
    if (before)
        kill_servers(play, victim);
    dispatcher_free(play->dispatcher);
    if (!before)
        kill_servers(play, victim);
    start_chief(play);
}

static void ask_to_leave(struct play *play, unsigned victim, unsigned number)
{
    atomic_store(&play->asks_while_saving, play->together && number % 2 == 0);
    for (unsigned i = 0; i < play->server_count; i++)
        if (play->together ? i == 0 || number % 2 != 0 : i == victim)
            ps_server_leave(play->servers[i]);
}

/* Kills a random process, or stops it for a while. Returns true if the chief must begin. */
static bool strike(struct play *play, struct crew_of_workers *crew, unsigned number, bool *ret_kills_server)
{
    unsigned victim = play->leaderless && number == 3 ? play->server_count + WORKERS
                                                      : draw(play, play->server_count + WORKERS + play->leaderless);
    if (play->orderly) {
        ask_to_leave(play, victim % play->server_count, number);
    } else if (victim == play->server_count + WORKERS) {
        if (play->freezes && draw(play, 2)) /* the next chief misses a worker that has a clock */
            freeze(crew->workers[draw(play, WORKERS)]);
        kill_chief(play);
        if (play->slow && draw(play, 2)) {
            replace_worker(play, crew, draw(play, WORKERS), true);
            usleep(1200000);
        }
        return true;
    } else if (victim >= play->server_count && play->freezes && number % 4 == 0) {
        freeze(crew->workers[victim - play->server_count]);
    } else if (victim >= play->server_count) {
        replace_worker(play, crew, victim - play->server_count, false);
    } else {
        kill_server(play, victim);
        *ret_kills_server = true;
    }
    return false;
}

/* True once all tickets are done; false: begin anew. */
static bool follow(struct play *play, struct crew_of_workers *crew, unsigned kills_every, unsigned *kills)
{
    bool kills_server = false; /* what is told until that is noticed kills nobody */
    if (release_leaving(play))
        return false;
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
        if (event.kind == EVENT_SERVER_LEAVING && release_leaving(play))
            return false;
        if (event.kind == EVENT_STEP && kills_every > 0)
            atomic_store(&play->awaited_step, event.step + SIGHT);
        if (event.kind != EVENT_STEP || kills_every == 0 || event.step % (int64_t)kills_every != 0)
            continue;
        if (!play->orderly && draw(play, 2) == 0)
            take_snapshot(play, false);
        if (event.step * 2 <= play->end * 9 / 10 && !kills_server && strike(play, crew, ++*kills, &kills_server))
            return false;
    }
}

/* By the chiefs' word each ticket has counted once since the last time that the crew went back. A worker that comes so late that
 * all is over is recorded meanwhile. */
static void expect_all_counted(struct play *play)
{
    bool *counted = memory_allocate((size_t)play->end, sizeof *counted);
    pthread_mutex_lock(&play->lock);
    for (unsigned i = 0; i < play->history_count; i++) {
        const struct history_entry *entry = &play->history[i];
        for (int64_t ticket = 0; entry->what == TICKET_VOID && ticket < play->end; ticket++)
            counted[ticket] = ticket < entry->ticket;
        if (entry->what != TICKET_DONE && entry->what != TICKET_LATE && entry->what != TICKET_KEPT)
            continue;
        must(!counted[entry->ticket] || entry->what == TICKET_KEPT, "a ticket counted twice");
        counted[entry->ticket] = true;
    }
    pthread_mutex_unlock(&play->lock);
    for (int64_t ticket = 0; ticket < play->end; ticket++)
        cr_expect(counted[ticket], "ticket %lld never counted", (long long)ticket);
    free(counted);
}

/* How many updates are in each server's parameters, all of which agree; false: a server was lost. */
static bool look_at_the_end(struct play *play)
{
    struct server_saved saved[PS_SERVERS_MAX] = {0};
    if (dispatcher_save(play->dispatcher, "nowhere", false, saved, NULL) < 0)
        return false;
    for (unsigned i = 0; i < play->server_count; i++) {
        ticket_set_release(&saved[i].tickets);
        play->in_the_end[i] = (int64_t)lroundf(-play->snapshots[i].written);
        must(atomic_load(&play->recorded[i]) == play->in_the_end[i], "a server's record is not what its values say");
    }
    return true;
}

static void run(struct play *play, unsigned kills_every, unsigned *ret_kills)
{
    struct crew_of_workers crew;
    start_chief(play);
    for (unsigned i = 0; i < WORKERS; i++)
        start_worker(play, &crew, i, 1);
    *ret_kills = 0;
    atomic_store(&play->awaited_step, kills_every > 0 ? SIGHT : play->end);
    do {
        do
            while (begin(play) < 0) /* lost again: look anew */
                ;
        while (!follow(play, &crew, kills_every, ret_kills));
        if (play->late)
            kill_server(play, draw(play, play->server_count));
        play->late = false;
    } while (!look_at_the_end(play));
    for (unsigned i = 0; i < play->server_count; i++) {
        ps_server_free(play->servers[i]); /* else the chief would wait for their farewell */
        play->servers[i] = NULL;
    }
    dispatcher_finish(play->dispatcher);
    if (play->mode != PARAMETER_SERVER_SYNCHRONOUS)
        expect_all_counted(play);
    for (unsigned i = 0; i < WORKERS; i++) {
        pthread_join(crew.threads[i], NULL);
        free(crew.workers[i]);
    }
}

static void list_all_rows(const struct play *play, struct row_set *rows)
{
    row_set_clear(rows);
    for (uint32_t row = 0; row < ROWS / play->server_count; row++)
        must(row_set_add(rows, row), "a row more");
}

/* Nobody else has this address. */
static uint16_t free_port(const char *host)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int taken = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert(inet_pton(AF_INET, host, &address.sin_addr) == 1 && bind(taken, (struct sockaddr *)&address, size) == 0 &&
              getsockname(taken, (struct sockaddr *)&address, &size) == 0);
    close(taken);
    return ntohs(address.sin_port);
}

static void set_up(struct play *play, unsigned seed)
{
    /* Each of the crew polls its own streams, as processes do: by default all in a process share one poller and hand it around. */
    setenv("GRPC_POLL_STRATEGY", "poll", 1);
    cr_assert(device_open(&(struct device_options){.threads = 1}, &play->device, NULL) == 0);
    play->server_count = play->server_count > 0 ? play->server_count : 2;
    placement_init(&play->placement, &layout, play->server_count);
    for (unsigned i = 0; i < play->server_count; i++)
        list_all_rows(play, &play->rows[i]);
    pthread_mutex_init(&play->lock, NULL);
    atomic_store(&play->random, seed);
    for (unsigned i = 0; i <= play->server_count; i++)
        snprintf(play->hosts[i], sizeof play->hosts[i], "127.%u.%u.%u", 100 + (unsigned)getpid() % 100,
                 (unsigned)getpid() / 100 % 250, i + 1);
    for (unsigned i = 0; i < play->server_count; i++)
        play->seats[i] =
            (struct crew_seat){.role = "ps", .index = i, .host = play->hosts[i], .port = free_port(play->hosts[i])};
    /* Servers read the others' ports from their start on. */
    for (unsigned i = 0; i < play->server_count; i++)
        start_server(play, i);
    play->chief = (struct crew_seat){.role = "worker", .host = play->hosts[play->server_count]};
}

static void tear_down(struct play *play)
{
    dispatcher_free(play->dispatcher);
    for (unsigned i = 0; i < play->server_count; i++) {
        ps_server_free(play->servers[i]);
        ticket_set_release(&play->snapshots[i].tickets);
        row_set_release(&play->rows[i]);
    }
    placement_release(&play->placement);
    device_close(play->device);
    free(play->history);
}

/* Successors that have joined and have no state yet: a save fails at once, for they would never answer. */
Test(histories, a_save_does_not_wait_for_servers_without_a_state, .timeout = 120)
{
    struct play play = {.mode = PARAMETER_SERVER_ASYNC, .end = 1200};
    struct server_standing standings[PS_SERVERS_MAX];
    struct server_saved saved[PS_SERVERS_MAX] = {0};
    struct error error = ERROR_INIT;
    set_up(&play, 5);
    start_chief(&play);
    cr_assert(dispatcher_await_servers(play.dispatcher, standings, &error) == 0, "%s", error.message);
    cr_expect(dispatcher_misses_a_server(play.dispatcher));
    cr_expect(dispatcher_save(play.dispatcher, "nowhere", false, saved, &error) < 0 && error.kind == ERROR_UNAVAILABLE,
              "%s", error.message);
    for (unsigned i = 0; i < play.server_count; i++)
        server_standing_release(&standings[i]);
    tear_down(&play);
}

Test(histories, a_full_volume_is_told_as_one, .timeout = 120)
{
    struct play play = {.mode = PARAMETER_SERVER_ASYNC, .full = true, .end = 1200};
    struct server_saved saved[PS_SERVERS_MAX] = {0};
    struct error error = ERROR_INIT;
    set_up(&play, 61);
    start_chief(&play);
    while (begin(&play) < 0)
        ;
    cr_expect(dispatcher_save(play.dispatcher, "nowhere", false, saved, &error) < 0);
    cr_expect(error.kind == ERROR_NO_SPACE && error.os_error == ENOSPC, "%s", error.message);
    tear_down(&play);
}

/* ---------------------------------------------------------------- what is lost */

static void expect_exact_losses(struct play *play, unsigned kills)
{
    int64_t missing = 0;
    for (unsigned i = 0; i < play->server_count; i++)
        missing += play->end - count_empty(play) - play->in_the_end[i];
    cr_expect(kills >= 8 && missing == dispatcher_lost(play->dispatcher),
              "%lld updates are missing after %u kills, %lld counted", (long long)missing, kills,
              (long long)dispatcher_lost(play->dispatcher));
}

Test(histories, what_is_lost_is_counted_exactly)
{
    struct play play = {.mode = PARAMETER_SERVER_ASYNC, .by_rows = true, .end = 600};
    unsigned kills;
    set_up(&play, 11);
    run(&play, 20, &kills);
    expect_exact_losses(&play, kills);
    tear_down(&play);
}

Test(histories, what_is_lost_is_counted_through_the_chiefs_death)
{
    struct play play = {.mode = PARAMETER_SERVER_ASYNC, .server_count = 3, .leaderless = true, .end = 600};
    unsigned kills;
    set_up(&play, 13);
    run(&play, 15, &kills);
    expect_exact_losses(&play, kills);
    cr_expect(play.chief_incarnation > 1, "the chief was never killed");
    tear_down(&play);
}

Test(histories, a_share_without_examples_is_no_loss)
{
    struct play play = {.mode = PARAMETER_SERVER_ASYNC, .leaderless = true, .empty_every = 5, .end = 600};
    unsigned kills;
    set_up(&play, 67);
    run(&play, 15, &kills);
    expect_exact_losses(&play, kills);
    tear_down(&play);
}

Test(histories, a_server_that_is_lost_after_the_last_ticket_is_led_again, .timeout = 120)
{
    struct play play = {.mode = PARAMETER_SERVER_ASYNC, .late = true, .end = 200};
    unsigned kills;
    set_up(&play, 17);
    run(&play, 0, &kills);
    expect_exact_losses(&play, 8);
    tear_down(&play);
}

Test(histories, synchronous_steps_are_done_again_after_the_last_ticket, .timeout = 120)
{
    struct play play = {.mode = PARAMETER_SERVER_SYNCHRONOUS, .late = true, .end = 200};
    unsigned kills;
    set_up(&play, 19);
    run(&play, 0, &kills);
    for (unsigned i = 0; i < play.server_count; i++)
        cr_expect(play.in_the_end[i] == play.end / 2, "ps %u took %lld steps", i, (long long)play.in_the_end[i]);
    tear_down(&play);
}

/* Whether it is among those that count after going back, by the entry that says so and those behind it. */
static bool still_counts(const struct play *play, unsigned rollback, int64_t ticket)
{
    if (ticket < play->history[rollback].ticket)
        return true;
    for (unsigned i = rollback + 1; i < play->history_count && play->history[i].what == (int)TICKET_KEPT; i++)
        if (play->history[i].ticket == ticket)
            return true;
    return false;
}

/* A checkpoint to which the crew goes back contains what workers had been told is done. */
static void expect_pushes_to_count(const struct play *play)
{
    for (unsigned i = 0; i < play->history_count; i++)
        for (unsigned j = 0; play->history[i].what == (int)TICKET_VOID && j < i; j++)
            must(play->history[j].what != WORK_PUSHED || still_counts(play, i, play->history[j].ticket),
                 "a ticket that was acknowledged is to be done again");
}

static void expect_nothing_lost(struct play play)
{
    bool synchronous = play.mode == PARAMETER_SERVER_SYNCHRONOUS;
    unsigned kills;
    play.orderly = true;
    play.end = 600;
    set_up(&play, 31);
    run(&play, 20, &kills);
    if (!synchronous) /* there the step under way is done again */
        expect_pushes_to_count(&play);
    cr_expect(!play.together || play.departed >= kills, "%u servers have left", play.departed);
    for (unsigned i = 0; i < play.server_count; i++)
        cr_expect(play.in_the_end[i] == (synchronous ? play.end / 2 : play.end), "ps %u", i);
    cr_expect(kills >= 8 && dispatcher_lost(play.dispatcher) == 0, "%u left, %lld updates are lost", kills,
              (long long)dispatcher_lost(play.dispatcher));
    tear_down(&play);
}

#define NOTHING_LOST(name, ...)                                                                                        \
    Test(histories, name)                                                                                              \
    {                                                                                                                  \
        expect_nothing_lost(__VA_ARGS__);                                                                              \
    }
NOTHING_LOST(servers_that_are_asked_to_leave_lose_nothing,
             (struct play){.mode = PARAMETER_SERVER_ASYNC, .share_memory = true})
/* The next chief does not know what was done. If one server had an update that another, which left, had not acknowledged, the update is
 * sent to the successor of that one. */
NOTHING_LOST(servers_that_are_asked_to_leave_with_their_chief_lose_nothing,
             (struct play){.mode = PARAMETER_SERVER_ASYNC, .follows = true})
NOTHING_LOST(synchronous_servers_that_are_asked_to_leave_lose_nothing,
             (struct play){.mode = PARAMETER_SERVER_SYNCHRONOUS})
NOTHING_LOST(servers_that_are_all_asked_to_leave_lose_nothing,
             (struct play){.mode = PARAMETER_SERVER_ASYNC, .together = true})

static void expect_synchronous(struct play play, unsigned seed)
{
    unsigned kills;
    play.mode = PARAMETER_SERVER_SYNCHRONOUS;
    play.end = 400;
    set_up(&play, seed);
    run(&play, 20, &kills);
    for (unsigned i = 0; i < play.server_count; i++)
        cr_expect(play.in_the_end[i] == play.end / 2, "ps %u took %lld steps of %lld", i, (long long)play.in_the_end[i],
                  (long long)play.end / 2);
    cr_expect(kills >= 6);
    tear_down(&play);
}

Test(histories, synchronous_steps_count_once_through_rollbacks)
{
    expect_synchronous((struct play){0}, 5);
}

Test(histories, synchronous_steps_of_rows_count_once)
{
    expect_synchronous((struct play){.by_rows = true}, 7);
}

Test(histories, synchronous_steps_count_once_through_the_chiefs_death)
{
    expect_synchronous((struct play){.leaderless = true}, 41);
}

/* ---------------------------------------------------------------- the bound */

/* How far anybody was ahead. */
static int64_t expect_bounded_clocks(struct play *play)
{
    const struct clocks_found found = look_at_clocks(play);
    cr_expect(found.furthest <= play->staleness, "the furthest worker was %lld ahead, the bound is %lld",
              (long long)found.furthest, (long long)play->staleness);
    cr_expect(found.behind <= play->staleness, "a worker was let in %lld behind the furthest, the bound is %lld",
              (long long)found.behind, (long long)play->staleness);
    cr_expect(found.waited_ms < 0 || found.waited_ms >= 1000,
              "a new chief gave out tickets %lld ms after its start, while it missed somebody",
              (long long)found.waited_ms);
    return found.furthest;
}

static bool has_been_left_behind(const struct play *play)
{
    bool took = false, left = false;
    for (unsigned i = 0; i < play->history_count; i++) {
        const struct history_entry *entry = &play->history[i];
        took |= entry->worker == 0 && entry->what == TICKET_TAKE;
        left |= took && entry->worker == 0 && entry->what == TICKET_LEAVE;
    }
    return left;
}

/* Checks the bound among the workers that count for the clock. With backup workers, one that is too slow does not count. */
static void expect_the_bound(struct play play, unsigned seed, unsigned kills_every)
{
    unsigned kills;
    play.mode = PARAMETER_SERVER_BOUNDED_STALENESS;
    play.straggles = true;
    play.end = 600;
    set_up(&play, seed);
    run(&play, kills_every, &kills);
    int64_t furthest = expect_bounded_clocks(&play);
    bool is_reached = play.spare > 0 ? has_been_left_behind(&play) : furthest == play.staleness;
    cr_expect(kills_every > 0 || is_reached, "the furthest worker was %lld ahead, the bound is %lld, %u are spare",
              (long long)furthest, (long long)play.staleness, play.spare);
    expect_exact_losses(&play, kills_every > 0 ? kills : 8);
    tear_down(&play);
}

#define BOUND(name, ...)                                                                                               \
    Test(histories, name)                                                                                              \
    {                                                                                                                  \
        expect_the_bound(__VA_ARGS__);                                                                                 \
    }
BOUND(nobody_waits_for_a_worker_that_is_spare, (struct play){.staleness = 2, .spare = 1}, 5, 0)
BOUND(nobody_waits_for_a_worker_that_is_spare_through_kills, (struct play){.staleness = 2, .spare = 1, .freezes = true},
      61, 12)
BOUND(nobody_waits_for_a_worker_that_is_spare_through_kills_of_the_chief,
      (struct play){.staleness = 3, .spare = 1, .freezes = true, .leaderless = true, .slow = true}, 67, 12)
BOUND(the_bound_is_never_exceeded, (struct play){.staleness = 2}, 3, 0)
BOUND(the_bound_is_never_exceeded_through_kills, (struct play){.staleness = 2, .freezes = true}, 53, 12)
BOUND(the_bound_is_never_exceeded_through_kills_of_the_chief,
      (struct play){.staleness = 3, .freezes = true, .leaderless = true, .slow = true}, 59, 12)
