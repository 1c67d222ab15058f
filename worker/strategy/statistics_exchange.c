/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/statistics_exchange.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/condition.h"
#include "common/lock.h"
#include "common/memory.h"
#include "common/scope.h"
#include "worker/comm/transfer.h"
#include "worker/strategy/reduction_tree.h"

#define PATIENCE_MS 300000 /* the group's, too */

struct point {
    double *all; /* [shards][count] */
    bool *here;  /* [shards] */
    unsigned arrived;
    bool complete;
};

struct statistics_exchange {
    struct shard_exchange base;
    unsigned first, end;
    struct collective *group;
    unsigned rank, size;
    unsigned left; /* shards that have completed their pass */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct error failure; /* the step's first */
    int64_t patience_ms;
    struct point *points;
    unsigned point_count;
};

/* ---------------------------------------------------------------- between processes */

struct segment {
    double *values;
    size_t bytes;
};

static struct segment segment_of(const struct statistics_exchange *exchange, const struct point *point, size_t count,
                                 unsigned rank)
{
    unsigned first, end;
    reduction_rank_leaves(exchange->base.shards, rank, exchange->size, &first, &end);
    return (struct segment){point->all + first * count, (end - first) * count * sizeof(double)};
}

static int receive_segments(struct statistics_exchange *exchange, unsigned number, size_t count, struct error *error)
{
    for (unsigned i = 1; i < exchange->size; i++) {
        unsigned rank = (exchange->rank + i) % exchange->size;
        struct segment theirs = segment_of(exchange, &exchange->points[number], count, rank);
        if (transfer_receive(exchange->group, rank, number, theirs.values, theirs.bytes, error) < 0)
            return -1;
    }
    return 0;
}

static int ask_others(struct statistics_exchange *exchange, unsigned number, size_t count, struct error *error)
{
    SCOPED_FREE struct transfer *sends = memory_allocate(exchange->size, sizeof *sends);
    struct segment own = segment_of(exchange, &exchange->points[number], count, exchange->rank);
    for (unsigned i = 1; i < exchange->size; i++)
        transfer_send_start(exchange->group, (exchange->rank + i) % exchange->size, number, own.values, own.bytes,
                            &sends[i]);
    int result = receive_segments(exchange, number, count, error);
    for (unsigned i = 1; i < exchange->size; i++) {
        if (transfer_wait(exchange->group, &sends[i], result == 0 ? error : NULL) < 0)
            result = -1;
        transfer_release(&sends[i]);
    }
    return result;
}

/* ---------------------------------------------------------------- between the passes of this process */

/* With the lock held, as the next functions up to `complete`. */
static bool is_broken(const struct statistics_exchange *exchange)
{
    return exchange->failure.kind != ERROR_NONE;
}

static void give_up(struct statistics_exchange *exchange, const struct error *cause)
{
    if (!is_broken(exchange))
        exchange->failure = *cause;
    pthread_cond_broadcast(&exchange->changed);
}

/* The first of this process's shards that has not come to a point. */
static unsigned find_missing(const struct statistics_exchange *exchange, const struct point *point)
{
    unsigned shard = exchange->first;
    while (shard + 1 < exchange->end && point->here[shard])
        shard++;
    return shard;
}

static void run_out_of_patience(struct statistics_exchange *exchange, const struct point *point)
{
    struct error cause = ERROR_INIT;
    unsigned number = (unsigned)(point - exchange->points), missing = exchange->end - exchange->first - point->arrived;
    (void)error_set(&cause, ERROR_TIMEOUT,
                    "BatchNorm statistics: Global: timed out after %lld s in layer %u (%s): %u logical shards of this "
                    "process have not arrived, the first is %u",
                    (long long)(exchange->patience_ms / 1000), number / 2, number % 2 == 0 ? "forward" : "backward",
                    missing, find_missing(exchange, point));
    give_up(exchange, &cause);
}

/* A pass that succeeded has gone through all points, at each of which all shards have arrived. */
static void miss_shard(struct statistics_exchange *exchange)
{
    struct error cause = ERROR_INIT;
    (void)error_set(&cause, ERROR_CANCELLED,
                    "statistics: Global: this logical shard waited for the statistics of another one, whose pass has "
                    "failed; see the error of that shard");
    give_up(exchange, &cause);
}

static bool all_arrived(const struct statistics_exchange *exchange, const struct point *point)
{
    return point->arrived == exchange->end - exchange->first;
}

/* Once all of this process are there the last of them asks the other processes, and has the group's patience. */
static void await(struct statistics_exchange *exchange, const struct point *point)
{
    int64_t deadline_ns = clock_monotonic_ns() + exchange->patience_ms * 1000000;
    while (!point->complete && !is_broken(exchange)) {
        if (all_arrived(exchange, point))
            pthread_cond_wait(&exchange->changed, &exchange->lock);
        else if (!condition_wait_until(&exchange->changed, &exchange->lock, deadline_ns) &&
                 !all_arrived(exchange, point))
            run_out_of_patience(exchange, point);
    }
}

/* Others need the lock meanwhile, to give up. */
static void complete(struct statistics_exchange *exchange, unsigned number, size_t count)
{
    struct error cause = ERROR_INIT;
    if (exchange->group) {
        pthread_mutex_unlock(&exchange->lock);
        (void)ask_others(exchange, number, count, &cause);
        pthread_mutex_lock(&exchange->lock);
    }
    if (cause.kind != ERROR_NONE)
        give_up(exchange, &cause);
    exchange->points[number].complete = true;
    pthread_cond_broadcast(&exchange->changed);
}

static const double *share(struct shard_exchange *base, unsigned shard, unsigned number, const double *own,
                           size_t count)
{
    struct statistics_exchange *exchange = (struct statistics_exchange *)base;
    struct point *point = &exchange->points[number];
    SCOPED_LOCK(&exchange->lock);
    if (point->all == NULL) {
        point->all = memory_allocate(base->shards * count, sizeof *own);
        point->here = memory_allocate(base->shards, sizeof *point->here);
    }
    memcpy(point->all + shard * count, own, count * sizeof *own);
    point->here[shard] = true;
    point->arrived++;
    if (exchange->left > 0)
        miss_shard(exchange);
    if (all_arrived(exchange, point) && !is_broken(exchange))
        complete(exchange, number, count);
    else
        await(exchange, point);
    const double *all = is_broken(exchange) ? NULL : point->all;
    return all;
}

static void leave(struct shard_exchange *base, unsigned shard)
{
    struct statistics_exchange *exchange = (struct statistics_exchange *)base;
    (void)shard;
    SCOPED_LOCK(&exchange->lock);
    exchange->left++;
    for (unsigned i = 0; i < exchange->point_count; i++)
        if (exchange->points[i].arrived > 0 && !all_arrived(exchange, &exchange->points[i]))
            miss_shard(exchange);
}

static int check(struct shard_exchange *base, struct error *error)
{
    struct statistics_exchange *exchange = (struct statistics_exchange *)base;
    pthread_mutex_lock(&exchange->lock);
    struct error failure = exchange->failure;
    pthread_mutex_unlock(&exchange->lock);
    if (failure.kind == ERROR_NONE)
        return 0;
    if (error != NULL)
        *error = failure;
    return -1;
}

void statistics_exchange_abandon(struct statistics_exchange *exchange)
{
    struct error cause = ERROR_INIT;
    (void)error_set(&cause, ERROR_CANCELLED, "a pass of the step could not be started");
    SCOPED_LOCK(&exchange->lock);
    give_up(exchange, &cause);
}

/* ---------------------------------------------------------------- life cycle */

struct statistics_exchange *statistics_exchange_new(unsigned shards, unsigned first, unsigned end, unsigned layers)
{
    struct statistics_exchange *exchange = memory_allocate(1, sizeof *exchange);
    exchange->base = (struct shard_exchange){.shards = shards, .share = share, .check = check, .leave = leave};
    exchange->first = first;
    exchange->end = end;
    exchange->point_count = shard_point_forward(layers);
    exchange->points = memory_allocate(exchange->point_count, sizeof *exchange->points);
    exchange->patience_ms = PATIENCE_MS;
    pthread_mutex_init(&exchange->lock, NULL);
    condition_init(&exchange->changed);
    return exchange;
}

void statistics_exchange_set_patience(struct statistics_exchange *exchange, int64_t milliseconds)
{
    exchange->patience_ms = milliseconds;
}

void statistics_exchange_free(struct statistics_exchange *exchange)
{
    if (exchange == NULL)
        return;
    for (unsigned i = 0; i < exchange->point_count; i++) {
        free(exchange->points[i].all);
        free(exchange->points[i].here);
    }
    free(exchange->points);
    pthread_cond_destroy(&exchange->changed);
    pthread_mutex_destroy(&exchange->lock);
    free(exchange);
}

struct shard_exchange *statistics_exchange_base(struct statistics_exchange *exchange)
{
    return &exchange->base;
}

void statistics_exchange_join(struct statistics_exchange *exchange, struct collective *group, unsigned rank,
                              unsigned size)
{
    exchange->group = size > 1 ? group : NULL;
    exchange->rank = rank;
    exchange->size = size;
}

void statistics_exchange_begin(struct statistics_exchange *exchange)
{
    SCOPED_LOCK(&exchange->lock);
    error_clear(&exchange->failure);
    exchange->left = 0;
    for (unsigned i = 0; i < exchange->point_count; i++) {
        struct point *point = &exchange->points[i];
        point->arrived = 0;
        point->complete = false;
        if (point->here)
            memset(point->here, 0, exchange->base.shards * sizeof *point->here);
    }
}
