/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/work_queue.h"

#include <stdlib.h>

#include "common/clock.h"
#include "common/memory.h"

/* Entries taken before other sources of the loop get their turn. */
#define BATCH 64
#define FAILURE_DOUBLINGS_MAX 6 /* 13 s: jobs are reconciled within 30 s after an outage */
#define GATE_RETRY_MS 5

struct work_queue {
    struct event_loop *loop;
    work_take *take;
    work_gate *may_take; /* NULL: always */
    void *context;
    struct job_entry *first, *last;
    size_t depth;
    struct event_timer *pump;
};

struct work_queue *work_queue_new(struct event_loop *loop, work_take *take, void *context)
{
    struct work_queue *queue = memory_allocate(1, sizeof *queue);
    queue->loop = loop;
    queue->take = take;
    queue->context = context;
    return queue;
}

void work_queue_set_gate(struct work_queue *queue, work_gate *may_take)
{
    queue->may_take = may_take;
}

void work_queue_free(struct work_queue *queue)
{
    if (queue->pump)
        event_timer_cancel(queue->pump);
    free(queue);
}

static struct job_entry *pop(struct work_queue *queue)
{
    struct job_entry *entry = queue->first;
    queue->first = entry->next_queued;
    if (!queue->first)
        queue->last = NULL;
    entry->next_queued = NULL;
    entry->queued = false;
    queue->depth--;
    return entry;
}

static void run_pump(void *context)
{
    struct work_queue *queue = context;
    bool may_take = true;
    queue->pump = NULL;
    for (int i = 0; i < BATCH && queue->first; i++) {
        may_take = !queue->may_take || queue->may_take(queue->context);
        if (!may_take)
            break;
        queue->take(queue->context, pop(queue));
    }
    if (queue->first && !queue->pump)
        queue->pump = event_timer_start(queue->loop, may_take ? 0 : GATE_RETRY_MS, run_pump, queue);
}

void work_queue_add(struct work_queue *queue, struct job_entry *entry)
{
    if (entry->executing)
        entry->dirty = true;
    if (entry->executing || entry->queued)
        return;
    entry->queued = true;
    if (queue->last)
        queue->last->next_queued = entry;
    else
        queue->first = entry;
    queue->last = entry;
    queue->depth++;
    if (!queue->pump)
        queue->pump = event_timer_start(queue->loop, 0, run_pump, queue);
}

static void timer_due(void *context)
{
    struct job_entry *entry = context;
    entry->timer = NULL;
    work_queue_add(entry->queue, entry);
}

void work_queue_add_at(struct work_queue *queue, struct job_entry *entry, int64_t at_ms)
{
    if (at_ms == PLAN_NEVER || (entry->timer && entry->timer_ms <= at_ms))
        return;
    if (entry->timer)
        event_timer_cancel(entry->timer);
    int64_t delay_ms = at_ms - clock_now_ms();
    entry->queue = queue;
    entry->timer_ms = at_ms;
    entry->timer = event_timer_start(queue->loop, delay_ms > 0 ? delay_ms : 0, timer_due, entry);
}

void work_queue_clock_was_set(struct work_queue *queue, struct job_entry *entry)
{
    if (entry->timer)
        event_timer_cancel(entry->timer);
    entry->timer = NULL;
    work_queue_add(queue, entry);
}

void work_queue_done(struct work_queue *queue, struct job_entry *entry)
{
    entry->failures = 0;
    entry->executing = false;
    if (entry->dirty)
        work_queue_add(queue, entry);
    entry->dirty = false;
}

void work_queue_failed(struct work_queue *queue, struct job_entry *entry)
{
    unsigned doublings = entry->failures < FAILURE_DOUBLINGS_MAX ? entry->failures : FAILURE_DOUBLINGS_MAX;
    int64_t delay_ms = (int64_t)WORK_RETRY_MS << (entry->dirty ? 0 : doublings);
    entry->failures++;
    entry->executing = entry->dirty = false;
    work_queue_add_at(queue, entry, clock_now_ms() + delay_ms);
}

void work_queue_remove(struct work_queue *queue, struct job_entry *entry)
{
    if (entry->timer)
        event_timer_cancel(entry->timer);
    entry->timer = NULL;
    struct job_entry **link = &queue->first, *before = NULL;
    while (*link && *link != entry) {
        before = *link;
        link = &(*link)->next_queued;
    }
    if (!*link)
        return;
    *link = entry->next_queued;
    if (queue->last == entry)
        queue->last = before;
    queue->depth--;
    entry->queued = false;
}

size_t work_queue_depth(const struct work_queue *queue)
{
    return queue->depth;
}
