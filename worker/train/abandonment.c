/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/abandonment.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/condition.h"
#include "common/lock.h"
#include "common/memory.h"

struct abandonment {
    struct abandonment_options options;
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    int64_t deadline_ns; /* 0: not requested */
    bool may_abandon;    /* a step is under way and has changed nothing, or a wait is */
    const char *wait;    /* NULL: it is a step */
    bool abandoning, over;
};

static bool is_time(const struct abandonment *abandonment)
{
    return abandonment->deadline_ns > 0 && clock_monotonic_ns() >= abandonment->deadline_ns;
}

static void *watch(void *argument)
{
    struct abandonment *abandonment = argument;
    pthread_mutex_lock(&abandonment->lock);
    while (!abandonment->over && !(is_time(abandonment) && abandonment->may_abandon)) {
        if (abandonment->deadline_ns > 0 && !is_time(abandonment))
            (void)condition_wait_until(&abandonment->changed, &abandonment->lock, abandonment->deadline_ns);
        else
            pthread_cond_wait(&abandonment->changed, &abandonment->lock);
    }
    abandonment->abandoning = !abandonment->over;
    bool abandons = abandonment->abandoning;
    pthread_mutex_unlock(&abandonment->lock);
    if (abandons)
        abandonment->options.abandon(abandonment->options.context);
    pthread_mutex_lock(&abandonment->lock);
    abandonment->abandoning = false;
    pthread_cond_broadcast(&abandonment->changed);
    pthread_mutex_unlock(&abandonment->lock);
    return NULL;
}

static void set_may_abandon(struct abandonment *abandonment, bool may, const char *wait)
{
    if (abandonment == NULL)
        return;
    SCOPED_LOCK(&abandonment->lock);
    while (abandonment->abandoning)
        pthread_cond_wait(&abandonment->changed, &abandonment->lock);
    abandonment->may_abandon = may;
    abandonment->wait = wait;
    if (may && abandonment->deadline_ns > 0)
        pthread_cond_broadcast(&abandonment->changed);
}

void abandonment_step_begins(struct abandonment *abandonment)
{
    set_may_abandon(abandonment, true, NULL);
}

void abandonment_holds_off(struct abandonment *abandonment)
{
    set_may_abandon(abandonment, false, NULL);
}

void abandonment_step_ends(struct abandonment *abandonment)
{
    set_may_abandon(abandonment, false, NULL);
}

void abandonment_wait_begins(struct abandonment *abandonment, const char *what)
{
    set_may_abandon(abandonment, true, what);
}

void abandonment_wait_ends(struct abandonment *abandonment)
{
    set_may_abandon(abandonment, false, NULL);
}

/* `wait` does not change while it is abandoned. */
const char *abandonment_wait(const struct abandonment *abandonment)
{
    return abandonment->wait;
}

void abandonment_ask(struct abandonment *abandonment)
{
    if (abandonment == NULL)
        return;
    SCOPED_LOCK(&abandonment->lock);
    if (abandonment->deadline_ns == 0)
        abandonment->deadline_ns = clock_monotonic_ns() + abandonment->options.patience_ms * 1000000;
    pthread_cond_broadcast(&abandonment->changed);
}

static void release(struct abandonment *abandonment)
{
    pthread_cond_destroy(&abandonment->changed);
    pthread_mutex_destroy(&abandonment->lock);
    free(abandonment);
}

int abandonment_new(const struct abandonment_options *options, struct abandonment **ret_abandonment,
                    struct error *error)
{
    struct abandonment *abandonment = memory_allocate(1, sizeof *abandonment);
    abandonment->options = *options;
    pthread_mutex_init(&abandonment->lock, NULL);
    condition_init(&abandonment->changed);
    errno = pthread_create(&abandonment->thread, NULL, watch, abandonment);
    if (errno != 0) {
        error_set_errno(error, "cannot start the thread that abandons long steps");
        release(abandonment);
        return -1;
    }
    *ret_abandonment = abandonment;
    return 0;
}

void abandonment_free(struct abandonment *abandonment)
{
    if (abandonment == NULL)
        return;
    pthread_mutex_lock(&abandonment->lock);
    abandonment->over = true;
    pthread_cond_broadcast(&abandonment->changed);
    pthread_mutex_unlock(&abandonment->lock);
    pthread_join(abandonment->thread, NULL);
    release(abandonment);
}
