/* SPDX-License-Identifier: Apache-2.0
 *
 * Condition variables whose timed waits are on the monotonic clock: a deadline is one however people set the time. All that
 * is waited for with a timeout is made by condition_init.
 */
#ifndef COXSWAIN_COMMON_CONDITION_H
#define COXSWAIN_COMMON_CONDITION_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

void condition_init(pthread_cond_t *condition);
/* False once clock_monotonic_ns has passed `deadline_ns`. As of every condition, the wait may end for no reason. */
bool condition_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t deadline_ns);
bool condition_wait_ms(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t ms);

#endif
