/* SPDX-License-Identifier: Apache-2.0
 *
 * Condition variables whose timed waits use the monotonic clock, so that setting the system time
 * does not move a deadline. Every condition that is waited for with a timeout must be initialized
 * with condition_init.
 */
#ifndef COXSWAIN_COMMON_CONDITION_H
#define COXSWAIN_COMMON_CONDITION_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Initializes `condition`; release it with pthread_cond_destroy. */
void condition_init(pthread_cond_t *condition);
/* Waits like pthread_cond_timedwait until `deadline_ns` of clock_monotonic_ns, or for `ms`
 * milliseconds. Returns false if the time has passed. May wake up spuriously: check the predicate
 * again. */
bool condition_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t deadline_ns);
bool condition_wait_ms(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t ms);

#endif
