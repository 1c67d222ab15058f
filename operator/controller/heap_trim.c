/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/heap_trim.h"

#include <malloc.h>
#include <stdlib.h>

#include "common/memory.h"

#define KEPT_BYTES (256 * 1024)

struct heap_trim {
    struct event_loop *loop;
    int64_t period_ms;
    struct event_timer *next;
};

static void give_back(void *context)
{
    struct heap_trim *trim = context;
    malloc_trim(KEPT_BYTES);
    trim->next = event_timer_start(trim->loop, trim->period_ms, give_back, trim);
}

struct heap_trim *heap_trim_start(struct event_loop *loop, int64_t period_ms)
{
    struct heap_trim *trim = memory_allocate(1, sizeof *trim);
    trim->loop = loop;
    trim->period_ms = period_ms;
    trim->next = event_timer_start(loop, period_ms, give_back, trim);
    return trim;
}

void heap_trim_end(struct heap_trim *trim)
{
    if (trim == NULL)
        return;
    event_timer_cancel(trim->next);
    free(trim);
}
