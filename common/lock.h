/* SPDX-License-Identifier: Apache-2.0
 *
 * Holds a mutex until the end of a scope, on every path out of it.
 */
#ifndef COXSWAIN_COMMON_LOCK_H
#define COXSWAIN_COMMON_LOCK_H

#include <pthread.h>

#include "common/scope.h"

static inline pthread_mutex_t *lock_take(pthread_mutex_t *mutex)
{
    pthread_mutex_lock(mutex);
    return mutex;
}

static inline void lock_release(pthread_mutex_t **mutex)
{
    pthread_mutex_unlock(*mutex);
}

/* Takes the mutex at once, and releases it when the scope ends: after the value of a `return` has been computed. */
#define SCOPED_LOCK(mutex) SCOPED(lock_release) pthread_mutex_t *scoped_lock = lock_take(mutex)

#endif
