/* SPDX-License-Identifier: Apache-2.0
 *
 * EMULATED_LATE=even, odd or all: streams with such a number, in the order of their creation, begin their work only once somebody waits
 * for it. A host or a stream that does not wait then reads too early, or overwrites what has not been read, every time.
 *
 * EMULATED_QUEUE=N: a stream holds N entries, and another launch waits, as in CUDA, which holds about 1,024. The process reports if N / 3
 * functions of the host (NCCL's work) are on one stream.
 */
#include "tests/gpu/emulated/fault.h"
#include "tests/gpu/emulated/graph.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One lock for all, since there are few streams. A stream's thread without work waits for its own condition, every other thread for
 * `changed`. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned long queued, done;   /* of all streams */
static unsigned waiting_for_entries; /* threads that wait for entries to be done, not for a stream or an event */

/* A position in a stream: the number of entries from its beginning on. */
struct place {
    unsigned long stream, entries;
};

struct CUevent_st {
    unsigned long recorded, reached; /* by the lock */
    struct place place;              /* where it was recorded last */
};

struct entry {
    struct entry *next;
    cudaHostFn_t *function;
    void *context;
    bool at_once;
};

struct CUstream_st {
    struct CUstream_st *next; /* by the lock, like the rest */
    pthread_t thread;
    pthread_cond_t has_more;
    int device;
    struct entry *first, *last;
    bool busy, ends, late;
    unsigned long number, appended, run, wanted, at_once; /* numbers of entries; `at_once`: of those in the queue */
};
static struct CUstream_st *streams; /* by the lock */
static unsigned long streams_made;

/* ---------------------------------------------------------------- the queue */

static bool has_work(const struct CUstream_st *stream)
{
    return stream->first && (!stream->late || stream->ends || stream->run < stream->wanted);
}

static struct entry *next_entry(struct CUstream_st *stream)
{
    pthread_mutex_lock(&lock);
    while (!has_work(stream) && !(stream->ends && !stream->first))
        pthread_cond_wait(&stream->has_more, &lock);
    struct entry *entry = stream->first;
    if (entry)
        stream->busy = true;
    pthread_mutex_unlock(&lock);
    return entry;
}

static void drop_first(struct CUstream_st *stream)
{
    pthread_mutex_lock(&lock);
    struct entry *entry = stream->first;
    stream->first = entry->next;
    stream->busy = false;
    stream->run++;
    stream->at_once -= entry->at_once;
    done++;
    if (!stream->first || waiting_for_entries > 0)
        pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    free(entry);
}

static void *stream_main(void *context)
{
    struct CUstream_st *stream = context;
    struct entry *entry;
    while ((entry = next_entry(stream))) {
        entry->function(entry->context);
        drop_first(stream);
    }
    emulated_release_fibers();
    return NULL;
}

/* With the lock. Lets a late stream run up to a place for which somebody waits, if the stream still exists. */
static void want(struct place place)
{
    for (struct CUstream_st *stream = streams; stream; stream = stream->next)
        if (stream->number == place.stream && stream->wanted < place.entries) {
            stream->wanted = place.entries;
            pthread_cond_signal(&stream->has_more);
        }
}

/* With the lock. */
static void await_entry(void)
{
    waiting_for_entries++;
    pthread_cond_wait(&changed, &lock);
    waiting_for_entries--;
}

static unsigned long queue_limit(void)
{
    const char *limit = getenv("EMULATED_QUEUE");
    return limit ? strtoul(limit, NULL, 10) : ULONG_MAX;
}

/* With the lock. Queued entries run to make room, even if the stream is late. */
static void make_room(cudaStream_t stream)
{
    while (stream->appended - stream->run >= queue_limit()) {
        stream->wanted = stream->appended;
        pthread_cond_signal(&stream->has_more);
        await_entry();
    }
}

static void append(cudaStream_t stream, cudaHostFn_t *function, void *context, bool at_once)
{
    struct entry *entry = calloc(1, sizeof *entry);
    if (!entry)
        abort();
    *entry = (struct entry){NULL, function, context, at_once};
    pthread_mutex_lock(&lock);
    make_room(stream);
    if (stream->first)
        stream->last->next = entry;
    else
        stream->first = entry;
    stream->last = entry;
    stream->appended++;
    if (at_once)
        stream->wanted = stream->appended;
    stream->at_once += at_once;
    if (at_once && stream->at_once == queue_limit() / 3)
        fprintf(stderr, "%lu functions are on a stream\n", stream->at_once);
    queued++;
    pthread_cond_signal(&stream->has_more);
    pthread_mutex_unlock(&lock);
}

void emulated_queue_function(cudaStream_t stream, cudaHostFn_t *function, void *context)
{
    if (emulated_captures(stream))
        emulated_spoil_capture();
    append(stream, function, context, true);
}

void emulated_queue_job(cudaStream_t stream, cudaHostFn_t *function, const void *job, size_t bytes)
{
    if (emulated_captures(stream)) {
        emulated_capture_job(function, job, bytes);
        return;
    }
    void *copy = malloc(bytes);
    if (!copy)
        abort();
    memcpy(copy, job, bytes);
    append(stream, function, copy, false);
}

/* ---------------------------------------------------------------- what is queued */

struct grid_job {
    struct emulated_grid grid;
    _Alignas(16) char context[];
};

static void run_grid(void *context)
{
    struct grid_job *job = context;
    job->grid.context = job->context;
    if (emulated_may_run())
        emulated_run_grid(&job->grid);
    free(job);
}

void emulated_queue_grid(cudaStream_t stream, const struct emulated_grid *grid)
{
    struct grid_job *job = calloc(1, sizeof *job + grid->context_bytes);
    if (!job)
        abort();
    job->grid = *grid;
    memcpy(job->context, grid->context, grid->context_bytes);
    emulated_queue_job(stream, run_grid, job, sizeof *job + grid->context_bytes);
    free(job);
}

struct copying {
    void *to;
    const void *from;
    size_t bytes;
};

static void copy(void *context)
{
    struct copying *job = context;
    memmove(job->to, job->from, job->bytes);
    free(job);
}

static void copy_wrongly(void *context)
{
    const struct copying *job = context;
    unsigned char *to = job->to;
    memmove(to, job->from, job->bytes);
    if (job->bytes > 0)
        to[job->bytes - 1]++;
    free(context);
}

static bool is_pageable(const void *memory)
{
    struct cudaPointerAttributes attributes;
    return cudaPointerGetAttributes(&attributes, memory) == cudaSuccess &&
           attributes.type == cudaMemoryTypeUnregistered;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    (void)kind;
    const char *pageable = getenv("EMULATED_PAGEABLE");
    if (pageable && strcmp(pageable, "refused") == 0 && bytes > 0 && (is_pageable(to) || is_pageable(from)))
        return cudaErrorInvalidValue;
    const bool spoils = emulated_spoils_copy(emulated_stream_device(stream), to, from, bytes);
    emulated_queue_job(stream, spoils ? copy_wrongly : copy, &(struct copying){to, from, bytes},
                       sizeof(struct copying));
    return cudaSuccess;
}

struct clearing {
    void *memory;
    int value;
    size_t bytes;
};

static void clear(void *context)
{
    struct clearing *job = context;
    memset(job->memory, job->value, job->bytes);
    free(job);
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream)
{
    emulated_queue_job(stream, clear, &(struct clearing){memory, value, bytes}, sizeof(struct clearing));
    return cudaSuccess;
}

/* A late stream stays late, unlike with work of NCCL, since peers wait for that. */
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t *function, void *context)
{
    if (emulated_captures(stream))
        emulated_spoil_capture();
    append(stream, function, context, false);
    return cudaSuccess;
}

/* ---------------------------------------------------------------- streams */

static bool is_late(unsigned long number)
{
    const char *late = getenv("EMULATED_LATE");
    return late && (strcmp(late, "all") == 0 || strcmp(late, number % 2 ? "odd" : "even") == 0);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret_stream, unsigned flags)
{
    (void)flags;
    struct CUstream_st *stream = calloc(1, sizeof *stream);
    if (!stream)
        return cudaErrorMemoryAllocation;
    (void)cudaGetDevice(&stream->device);
    pthread_cond_init(&stream->has_more, NULL);
    pthread_mutex_lock(&lock);
    stream->number = streams_made;
    stream->late = is_late(stream->number);
    const bool made = pthread_create(&stream->thread, NULL, stream_main, stream) == 0;
    if (made) {
        streams_made++;
        stream->next = streams;
        streams = stream;
    }
    pthread_mutex_unlock(&lock);
    if (!made) {
        free(stream);
        return cudaErrorMemoryAllocation;
    }
    *ret_stream = stream;
    return cudaSuccess;
}

int emulated_stream_device(cudaStream_t stream)
{
    return stream->device;
}

/* Queued entries still run. */
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    pthread_mutex_lock(&lock);
    stream->ends = true;
    pthread_cond_signal(&stream->has_more);
    pthread_mutex_unlock(&lock);
    pthread_join(stream->thread, NULL);
    pthread_mutex_lock(&lock);
    struct CUstream_st **at = &streams;
    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
    pthread_mutex_unlock(&lock);
    free(stream);
    return cudaSuccess;
}

/* Work without a stream is done when its call returns. */
cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    if (emulated_forbids())
        return emulated_fail(cudaErrorStreamCaptureUnsupported);
    if (!stream)
        return emulated_fault();
    pthread_mutex_lock(&lock);
    want((struct place){stream->number, stream->appended});
    while (stream->first || stream->busy)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return emulated_fault();
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    if (emulated_forbids())
        return emulated_fail(cudaErrorStreamCaptureUnsupported);
    pthread_mutex_lock(&lock);
    const bool busy = stream->first || stream->busy;
    pthread_mutex_unlock(&lock);
    return busy ? emulated_fail(cudaErrorNotReady) : emulated_fault();
}

/* Fails in any thread while any stream of the GPU captures. */
cudaError_t cudaDeviceSynchronize(void)
{
    if (emulated_forbids() || emulated_someone_captures())
        return emulated_fail(cudaErrorStreamCaptureUnsupported);
    pthread_mutex_lock(&lock);
    for (struct CUstream_st *stream = streams; stream; stream = stream->next)
        want((struct place){stream->number, stream->appended});
    const unsigned long until = queued;
    while (done < until)
        await_entry();
    pthread_mutex_unlock(&lock);
    return emulated_fault();
}

/* ---------------------------------------------------------------- events */

/* A recording of an event, or a stream's wait for one. */
struct mark {
    struct CUevent_st *event;
    unsigned long number;
    struct place place;
};

static void reach(void *context)
{
    struct mark *mark = context;
    pthread_mutex_lock(&lock);
    if (mark->event->reached < mark->number)
        mark->event->reached = mark->number;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    free(mark);
}

static void await_reached(const struct mark *mark)
{
    pthread_mutex_lock(&lock);
    want(mark->place);
    while (mark->event->reached < mark->number)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void wait_for(void *context)
{
    await_reached(context);
    free(context);
}

static struct mark last_recording(cudaEvent_t event)
{
    pthread_mutex_lock(&lock);
    const struct mark mark = {event, event->recorded, event->place};
    pthread_mutex_unlock(&lock);
    return mark;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    *event = calloc(1, sizeof **event);
    (void)flags;
    return *event ? cudaSuccess : cudaErrorMemoryAllocation;
}

/* Waits until nothing needs the event, because CUDA keeps it for queued work. */
cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    (void)cudaDeviceSynchronize();
    free(event);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    if (emulated_captures(stream) && emulated_forbids())
        return emulated_fail(cudaErrorStreamCaptureIsolation);
    pthread_mutex_lock(&lock);
    event->recorded++;
    event->place = (struct place){stream->number, stream->appended + 1};
    pthread_mutex_unlock(&lock);
    const struct mark mark = last_recording(event);
    emulated_queue_job(stream, reach, &mark, sizeof mark);
    return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
    if (flags != cudaEventRecordExternal || !emulated_captures(stream))
        return cudaEventRecord(event, stream);
    emulated_capture_event(event);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    (void)flags;
    if (emulated_captures(stream) && emulated_forbids())
        return emulated_fail(cudaErrorStreamCaptureIsolation);
    const struct mark mark = last_recording(event);
    emulated_queue_job(stream, wait_for, &mark, sizeof mark);
    return cudaSuccess;
}

/* A query lets a late stream run, since a caller may repeat it instead of waiting. */
cudaError_t cudaEventQuery(cudaEvent_t event)
{
    if (emulated_forbids())
        return emulated_fail(cudaErrorStreamCaptureUnsupported);
    const struct mark mark = last_recording(event);
    pthread_mutex_lock(&lock);
    want(mark.place);
    const bool reached = event->reached >= mark.number;
    pthread_mutex_unlock(&lock);
    return reached ? emulated_fault() : emulated_fail(cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    if (emulated_forbids())
        return emulated_fail(cudaErrorStreamCaptureUnsupported);
    const struct mark mark = last_recording(event);
    await_reached(&mark);
    return emulated_fault();
}
