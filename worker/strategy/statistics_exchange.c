/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/statistics_exchange.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/memory.h"
#include "common/scope.h"
#include "worker/comm/transfer.h"
#include "worker/strategy/reduction_tree.h"

/* Within a process; between processes the group's deadline counts. */
#define PATIENCE_S 600

struct point {
    double *all; /* [shards][count] */
    unsigned arrived;
    bool complete;
};

struct statistics_exchange {
    struct shard_exchange base;
    unsigned first, end;
    struct collective *group;
    unsigned rank, size;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool broken;
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

static int ask_others(struct statistics_exchange *exchange, unsigned number, size_t count)
{
    const struct point *point = &exchange->points[number];
    SCOPED_FREE struct transfer *sends = memory_allocate(exchange->size, sizeof *sends);
    struct segment own = segment_of(exchange, point, count, exchange->rank);
    int result = 0;
    for (unsigned i = 1; i < exchange->size; i++)
        transfer_send_start(exchange->group, (exchange->rank + i) % exchange->size, number, own.values, own.bytes,
                            &sends[i]);
    for (unsigned i = 1; i < exchange->size && result == 0; i++) {
        unsigned rank = (exchange->rank + i) % exchange->size;
        struct segment theirs = segment_of(exchange, point, count, rank);
        result = transfer_receive(exchange->group, rank, number, theirs.values, theirs.bytes, NULL);
    }
    for (unsigned i = 1; i < exchange->size; i++) {
        result |= transfer_wait(exchange->group, &sends[i], NULL);
        transfer_release(&sends[i]);
    }
    return result;
}

/* ---------------------------------------------------------------- between the passes of this process */

/* With the lock held. */
static void await(struct statistics_exchange *exchange, const struct point *point)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    while (!point->complete && !exchange->broken)
        if (pthread_cond_timedwait(&exchange->changed, &exchange->lock, &until) != 0)
            exchange->broken = true;
}

/* With the lock held, which others need to give up meanwhile. */
static void complete(struct statistics_exchange *exchange, unsigned number, size_t count)
{
    int result = 0;
    if (exchange->group) {
        pthread_mutex_unlock(&exchange->lock);
        result = ask_others(exchange, number, count);
        pthread_mutex_lock(&exchange->lock);
    }
    exchange->points[number].complete = true;
    exchange->broken |= result < 0;
    pthread_cond_broadcast(&exchange->changed);
}

static const double *share(struct shard_exchange *base, unsigned shard, unsigned number, const double *own,
                           size_t count)
{
    struct statistics_exchange *exchange = (struct statistics_exchange *)base;
    struct point *point = &exchange->points[number];
    pthread_mutex_lock(&exchange->lock);
    if (point->all == NULL)
        point->all = memory_allocate(base->shards * count, sizeof *own);
    memcpy(point->all + shard * count, own, count * sizeof *own);
    if (++point->arrived == exchange->end - exchange->first && !exchange->broken)
        complete(exchange, number, count);
    else
        await(exchange, point);
    const double *all = exchange->broken ? NULL : point->all;
    pthread_mutex_unlock(&exchange->lock);
    return all;
}

/* ---------------------------------------------------------------- life cycle */

struct statistics_exchange *statistics_exchange_new(unsigned shards, unsigned first, unsigned end, unsigned layers)
{
    struct statistics_exchange *exchange = memory_allocate(1, sizeof *exchange);
    exchange->base = (struct shard_exchange){.shards = shards, .share = share};
    exchange->first = first;
    exchange->end = end;
    exchange->point_count = shard_point_forward(layers);
    exchange->points = memory_allocate(exchange->point_count, sizeof *exchange->points);
    pthread_mutex_init(&exchange->lock, NULL);
    pthread_cond_init(&exchange->changed, NULL);
    return exchange;
}

void statistics_exchange_free(struct statistics_exchange *exchange)
{
    if (exchange == NULL)
        return;
    for (unsigned i = 0; i < exchange->point_count; i++)
        free(exchange->points[i].all);
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
    pthread_mutex_lock(&exchange->lock);
    exchange->broken = false;
    for (unsigned i = 0; i < exchange->point_count; i++) {
        exchange->points[i].arrived = 0;
        exchange->points[i].complete = false;
    }
    pthread_mutex_unlock(&exchange->lock);
}
