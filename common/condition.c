/* SPDX-License-Identifier: Apache-2.0 */
#include "common/condition.h"

#include <time.h>

#include "common/clock.h"

#define MS_NS 1000000
#define SECOND_NS 1000000000

void condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

bool condition_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t deadline_ns)
{
    const struct timespec until = {.tv_sec = deadline_ns / SECOND_NS, .tv_nsec = deadline_ns % SECOND_NS};
    return pthread_cond_timedwait(condition, lock, &until) == 0;
}

bool condition_wait_ms(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t ms)
{
    return condition_wait_until(condition, lock, clock_monotonic_ns() + ms * MS_NS);
}
