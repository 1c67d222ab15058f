/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cpu/team.h"
#include "common/lock.h"
#include "common/subnormals.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/memory.h"
#include "worker/device/cpu/futex.h"

/* Each share has its own cache line. */
struct share {
    _Atomic int64_t next;
    int64_t end;
} __attribute__((aligned(64)));

struct helper {
    struct team *team;
    int index;
    pthread_t thread;
};

/* A helper may touch the job only between raising `active` and lowering it while `open` is set; the leader changes the
 * job only while `open` is 0 and `active` is 0. */
struct team {
    int threads;
    size_t scratch_bytes;
    char *scratch;
    struct helper *helpers; /* threads - 1 */
    struct share *shares;
    pthread_mutex_t turn;

    team_piece *function;
    const void *context;
    _Atomic uint32_t open __attribute__((aligned(64)));
    _Atomic uint32_t active __attribute__((aligned(64)));
    _Atomic uint32_t sleepers;
    _Atomic bool ending;
};

static void *scratch_of(const struct team *team, int index)
{
    return team->scratch + (size_t)index * team->scratch_bytes;
}

static void work(struct team *team, int index)
{
    for (int turn = 0; turn < team->threads; turn++) {
        struct share *share = &team->shares[(index + turn) % team->threads];
        for (;;) {
            int64_t piece = atomic_fetch_add_explicit(&share->next, 1, memory_order_relaxed);
            if (piece >= share->end)
                break;
            team->function(team->context, piece, scratch_of(team, index));
        }
    }
}

static void sleep_until_open(struct team *team)
{
    if (spin_while(&team->open, 0) != 0)
        return;
    atomic_fetch_add(&team->sleepers, 1);
    while (atomic_load(&team->open) == 0 && !atomic_load(&team->ending))
        futex_wait(&team->open, 0);
    atomic_fetch_sub(&team->sleepers, 1);
}

/* Waits for another thread's last piece: usually short, unless that thread has been descheduled. */
static void pause_or_yield(int round)
{
    if (round < SPIN_ROUNDS)
        processor_pause();
    else
        sched_yield();
}

static void *help(void *context)
{
    struct helper *helper = context;
    subnormals_flush();
    struct team *team = helper->team;
    uint32_t served = 0;
    int idle = 0;
    while (!atomic_load(&team->ending)) {
        uint32_t open = atomic_load(&team->open);
        if (open == 0) {
            sleep_until_open(team);
            continue;
        }
        if (open == served) { /* our pieces are done, the leader has not closed yet */
            pause_or_yield(idle++);
            continue;
        }
        idle = 0;
        atomic_fetch_add(&team->active, 1);
        if (atomic_load(&team->open) == open) {
            work(team, helper->index);
            served = open;
        }
        atomic_fetch_sub(&team->active, 1);
    }
    return NULL;
}

static void open_region(struct team *team, uint32_t number)
{
    atomic_store(&team->open, number);
    if (atomic_load(&team->sleepers) > 0)
        futex_wake_all(&team->open);
}

static void close_region(struct team *team)
{
    atomic_store(&team->open, 0);
    for (int round = 0; atomic_load(&team->active) > 0; round++)
        pause_or_yield(round);
}

static void run_alone(struct team *team, int64_t pieces, team_piece *function, const void *context)
{
    for (int64_t piece = 0; piece < pieces; piece++)
        function(context, piece, team->scratch);
}

void team_run(struct team *team, int64_t pieces, team_piece *function, const void *context)
{
    static _Atomic uint32_t numbers;
    SCOPED_LOCK(&team->turn);
    if (team->threads == 1 || pieces <= 1) {
        run_alone(team, pieces, function, context);
    } else {
        team->function = function;
        team->context = context;
        for (int t = 0; t < team->threads; t++) {
            atomic_store_explicit(&team->shares[t].next, pieces * t / team->threads, memory_order_relaxed);
            team->shares[t].end = pieces * (t + 1) / team->threads;
        }
        uint32_t number = atomic_fetch_add(&numbers, 1) | 1U << 31;
        open_region(team, number);
        work(team, 0);
        close_region(team);
    }
}

static void end_helpers(struct team *team, int count)
{
    atomic_store(&team->ending, true);
    atomic_store(&team->open, 1);
    futex_wake_all(&team->open);
    for (int i = 0; i < count; i++)
        pthread_join(team->helpers[i].thread, NULL);
}

static void release(struct team *team)
{
    pthread_mutex_destroy(&team->turn);
    free(team->scratch);
    free(team->shares);
    free(team->helpers);
    free(team);
}

int team_new(int threads, size_t scratch_bytes, struct team **ret_team, struct error *error)
{
    struct team *team = aligned_alloc(64, sizeof *team);
    if (!team)
        return error_set(error, ERROR_NO_SPACE, "no memory for a team of %d threads", threads);
    *team = (struct team){.threads = threads, .scratch_bytes = (scratch_bytes + 63) / 64 * 64};
    pthread_mutex_init(&team->turn, NULL);
    team->helpers = memory_allocate((size_t)threads, sizeof *team->helpers);
    team->shares = aligned_alloc(64, (size_t)threads * sizeof *team->shares);
    team->scratch = aligned_alloc(64, (size_t)threads * team->scratch_bytes);
    if (!team->shares || !team->scratch) {
        release(team);
        return error_set(error, ERROR_NO_SPACE, "no memory for a team of %d threads", threads);
    }
    for (int i = 0; i < threads - 1; i++) {
        struct helper *helper = &team->helpers[i];
        *helper = (struct helper){.team = team, .index = i + 1};
        int failed = pthread_create(&helper->thread, NULL, help, helper);
        if (failed) {
            end_helpers(team, i);
            release(team);
            return error_set(error, ERROR_UNAVAILABLE, "cannot start thread %d of %d (error %d)", i + 2, threads,
                             failed);
        }
    }
    *ret_team = team;
    return 0;
}

void team_free(struct team *team)
{
    if (!team)
        return;
    end_helpers(team, team->threads - 1);
    release(team);
}

int team_threads(const struct team *team)
{
    return team->threads;
}
