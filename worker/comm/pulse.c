/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/pulse.h"

#include <pthread.h>
#include <stddef.h>

#include "common/clock.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list */
static struct pulse *first;

void pulse_start(struct pulse *pulse, const char *name)
{
    pulse->name = name;
    pulse_beat(pulse);
    pthread_mutex_lock(&lock);
    pulse->next = first;
    first = pulse;
    pthread_mutex_unlock(&lock);
}

void pulse_beat(struct pulse *pulse)
{
    atomic_store_explicit(&pulse->beat_ms, clock_monotonic_ms(), memory_order_relaxed);
}

void pulse_end(struct pulse *pulse)
{
    pthread_mutex_lock(&lock);
    for (struct pulse **place = &first; *place != NULL; place = &(*place)->next)
        if (*place == pulse) {
            *place = pulse->next;
            break;
        }
    pthread_mutex_unlock(&lock);
}

int64_t pulse_age_ms(const struct pulse *pulse)
{
    return clock_monotonic_ms() - atomic_load_explicit(&pulse->beat_ms, memory_order_relaxed);
}

int64_t pulse_oldest_ms(const char **ret_name)
{
    int64_t oldest_ms = 0;
    *ret_name = NULL;
    pthread_mutex_lock(&lock);
    for (const struct pulse *pulse = first; pulse != NULL; pulse = pulse->next)
        if (*ret_name == NULL || pulse_age_ms(pulse) > oldest_ms) {
            oldest_ms = pulse_age_ms(pulse);
            *ret_name = pulse->name;
        }
    pthread_mutex_unlock(&lock);
    return oldest_ms;
}
