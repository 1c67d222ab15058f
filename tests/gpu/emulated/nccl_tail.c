/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/emulated/nccl_tail.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOK_MS 5

/* Messages that were sent together. */
struct load {
    struct load *next;
    struct wire_message *messages;
};

struct wire_tail {
    const int *sockets;
    int ranks;
    const _Atomic bool *stop;
    _Atomic bool *gone;
    long late_ms;
    pthread_t thread;
    pthread_mutex_t lock;
    struct load *first, **end; /* by the lock */
};

static void free_load(struct load *load)
{
    while (load->messages) {
        struct wire_message *next = load->messages->next;
        free(load->messages->bytes);
        free(load->messages);
        load->messages = next;
    }
    free(load);
}

/* Returns false once it is to stop. */
static bool wait_a_while(const struct wire_tail *tail, long ms)
{
    for (; ms > 0 && !atomic_load(tail->stop); ms -= LOOK_MS)
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000}, NULL);
    return !atomic_load(tail->stop);
}

static struct load *take_first(struct wire_tail *tail)
{
    pthread_mutex_lock(&tail->lock);
    struct load *load = tail->first;
    if (load) {
        tail->first = load->next;
        tail->end = tail->first ? tail->end : &tail->first;
    }
    pthread_mutex_unlock(&tail->lock);
    return load;
}

static void *send_on(void *context)
{
    struct wire_tail *tail = context;
    while (wait_a_while(tail, LOOK_MS)) {
        struct load *load = take_first(tail);
        if (!load)
            continue;
        if (wait_a_while(tail, tail->late_ms))
            (void)wire_exchange(tail->sockets, tail->ranks, load->messages, tail->stop, tail->gone);
        free_load(load);
    }
    return NULL;
}

struct wire_tail *wire_tail_new(const int *sockets, int ranks, const _Atomic bool *stop, _Atomic bool *gone,
                                long late_ms)
{
    struct wire_tail *tail = calloc(1, sizeof *tail);
    if (!tail)
        abort();
    *tail = (struct wire_tail){.sockets = sockets, .ranks = ranks, .stop = stop, .gone = gone, .late_ms = late_ms};
    tail->end = &tail->first;
    pthread_mutex_init(&tail->lock, NULL);
    if (pthread_create(&tail->thread, NULL, send_on, tail) != 0)
        abort();
    return tail;
}

static void *copy_of(const void *bytes, size_t length)
{
    void *copy = malloc(length > 0 ? length : 1);
    if (!copy)
        abort();
    return memcpy(copy, bytes, length);
}

void wire_tail_take(struct wire_tail *tail, struct wire_message **messages)
{
    struct load *load = calloc(1, sizeof *load);
    struct wire_message **end = load ? &load->messages : NULL;
    if (!load)
        abort();
    while (*messages) {
        struct wire_message *message = *messages;
        if (message->receives) {
            messages = &message->next;
            continue;
        }
        *messages = message->next;
        message->bytes = copy_of(message->bytes, message->length);
        message->next = NULL;
        *end = message;
        end = &message->next;
    }
    pthread_mutex_lock(&tail->lock);
    *tail->end = load;
    tail->end = &load->next;
    pthread_mutex_unlock(&tail->lock);
}

void wire_tail_free(struct wire_tail *tail)
{
    if (!tail)
        return;
    pthread_join(tail->thread, NULL);
    for (struct load *load = take_first(tail); load; load = take_first(tail))
        free_load(load);
    pthread_mutex_destroy(&tail->lock);
    free(tail);
}
