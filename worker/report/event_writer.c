/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/report/event_writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/buffer.h"
#include "common/clock.h"
#include "common/condition.h"
#include "common/lock.h"
#include "common/memory.h"
#include "worker/checkpoint/file.h"

struct event_writer {
    /* Used by the thread only. */
    int descriptor;
    struct buffer written;
    pthread_t thread;

    pthread_mutex_t lock; /* guards the members below */
    pthread_cond_t changed;
    struct buffer queue; /* whole records */
    int64_t left_out;
    bool due, writing; /* due: the queue must be written; writing: the thread is writing `written` */
    bool closing, ended, abandoned;
    bool has_failed;
    struct error failure;
};

static void release(struct event_writer *writer)
{
    buffer_release(&writer->written);
    buffer_release(&writer->queue);
    pthread_cond_destroy(&writer->changed);
    pthread_mutex_destroy(&writer->lock);
    free(writer);
}

/* ---------------------------------------------------------------- the thread */

/* Writes the queue. Called with the lock held; releases it while the disk writes. */
static void write_queue(struct event_writer *writer)
{
    struct error cause = ERROR_INIT;
    struct buffer records = writer->queue;
    writer->queue = writer->written;
    writer->written = records;
    writer->due = false;
    writer->writing = true;
    pthread_mutex_unlock(&writer->lock);
    int result = file_write_all(writer->descriptor, buffer_text(&records), records.length, &cause);
    pthread_mutex_lock(&writer->lock);
    buffer_clear(&writer->written);
    writer->writing = false;
    if (result < 0) {
        writer->has_failed = true;
        writer->failure = cause;
        buffer_clear(&writer->queue);
    }
    pthread_cond_broadcast(&writer->changed);
}

/* Closes the file without holding the lock, because closing may take as long as writing. */
static void end(struct event_writer *writer)
{
    pthread_mutex_unlock(&writer->lock);
    (void)file_calls.close(writer->descriptor);
    pthread_mutex_lock(&writer->lock);
    writer->ended = true;
    pthread_cond_broadcast(&writer->changed);
}

static void *run(void *context)
{
    struct event_writer *writer = context;
    pthread_mutex_lock(&writer->lock);
    for (;;) {
        if (writer->queue.length > 0 && (writer->due || writer->closing))
            write_queue(writer);
        else if (writer->closing)
            break;
        else
            pthread_cond_wait(&writer->changed, &writer->lock);
    }
    end(writer);
    bool abandoned = writer->abandoned;
    pthread_mutex_unlock(&writer->lock);
    if (abandoned)
        release(writer);
    return NULL;
}

/* ---------------------------------------------------------------- the caller's side */

/* With the lock held. */
static int tell_failure(const struct event_writer *writer, struct error *error)
{
    if (writer->has_failed && error != NULL)
        *error = writer->failure;
    return writer->has_failed ? -1 : 0;
}

int event_writer_append(struct event_writer *writer, const void *record, size_t length, struct error *error)
{
    SCOPED_LOCK(&writer->lock);
    int result = tell_failure(writer, error);
    if (result == 0 && buffer_append(&writer->queue, record, length, NULL) < 0)
        writer->left_out++;
    return result;
}

int64_t event_writer_left_out(struct event_writer *writer)
{
    SCOPED_LOCK(&writer->lock);
    int64_t left_out = writer->left_out;
    return left_out;
}

int event_writer_flush(struct event_writer *writer, struct error *error)
{
    SCOPED_LOCK(&writer->lock);
    writer->due = true;
    pthread_cond_broadcast(&writer->changed);
    return tell_failure(writer, error);
}

static bool is_done(const struct event_writer *writer)
{
    return writer->closing ? writer->ended : writer->queue.length == 0 && !writer->writing;
}

/* With the lock held. */
static bool await(struct event_writer *writer, int64_t ms)
{
    int64_t deadline_ns = clock_monotonic_ns() + ms * 1000000;
    writer->due = true;
    pthread_cond_broadcast(&writer->changed);
    while (!is_done(writer) && condition_wait_until(&writer->changed, &writer->lock, deadline_ns))
        ;
    return is_done(writer);
}

bool event_writer_settle(struct event_writer *writer, int64_t ms)
{
    SCOPED_LOCK(&writer->lock);
    return await(writer, ms) && !writer->has_failed;
}

bool event_writer_free(struct event_writer *writer, int64_t ms)
{
    pthread_mutex_lock(&writer->lock);
    writer->closing = true;
    bool ended = await(writer, ms), is_there = ended && !writer->has_failed;
    pthread_t thread = writer->thread;
    writer->abandoned = !ended;
    pthread_mutex_unlock(&writer->lock);
    if (ended) {
        pthread_join(thread, NULL);
        release(writer);
    } else {
        pthread_detach(thread);
    }
    return is_there;
}

int event_writer_new(int descriptor, struct event_writer **ret_writer, struct error *error)
{
    struct event_writer *writer = memory_allocate(1, sizeof *writer);
    writer->descriptor = descriptor;
    buffer_init(&writer->queue, EVENT_WRITER_QUEUE);
    buffer_init(&writer->written, EVENT_WRITER_QUEUE);
    pthread_mutex_init(&writer->lock, NULL);
    condition_init(&writer->changed);
    errno = pthread_create(&writer->thread, NULL, run, writer);
    if (errno != 0) {
        error_set_errno(error, "cannot start the thread that writes events");
        (void)file_calls.close(descriptor);
        release(writer);
        return -1;
    }
    *ret_writer = writer;
    return 0;
}
