/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/heartbeat.h"

#include <pthread.h>
#include <stddef.h>

#include "common/clock.h"
#include "common/lock.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list */
static struct heartbeat *first;

void heartbeat_start(struct heartbeat *heartbeat, const char *name)
{
    heartbeat->name = name;
    heartbeat_renew(heartbeat);
    SCOPED_LOCK(&lock);
    heartbeat->next = first;
    first = heartbeat;
}

void heartbeat_renew(struct heartbeat *heartbeat)
{
    atomic_store_explicit(&heartbeat->beat_ms, clock_monotonic_ms(), memory_order_relaxed);
}

void heartbeat_end(struct heartbeat *heartbeat)
{
    SCOPED_LOCK(&lock);
    for (struct heartbeat **place = &first; *place != NULL; place = &(*place)->next)
        if (*place == heartbeat) {
            *place = heartbeat->next;
            break;
        }
}

int64_t heartbeat_age_ms(const struct heartbeat *heartbeat)
{
    return clock_monotonic_ms() - atomic_load_explicit(&heartbeat->beat_ms, memory_order_relaxed);
}

int64_t heartbeat_oldest_ms(const char **ret_name)
{
    int64_t oldest_ms = 0;
    *ret_name = NULL;
    SCOPED_LOCK(&lock);
    for (const struct heartbeat *heartbeat = first; heartbeat != NULL; heartbeat = heartbeat->next)
        if (*ret_name == NULL || heartbeat_age_ms(heartbeat) > oldest_ms) {
            oldest_ms = heartbeat_age_ms(heartbeat);
            *ret_name = heartbeat->name;
        }
    return oldest_ms;
}
