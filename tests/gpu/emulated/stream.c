/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/emulated/stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* One lock and one condition for all: there are few streams. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned long queued, done; /* of all streams */

struct CUevent_st {
    unsigned long recorded, reached; /* by the lock */
};

struct entry {
    struct entry *next;
    cudaHostFn_t *function;
    void *context;
};

struct CUstream_st {
    pthread_t thread;
    struct entry *first, *last; /* by the lock, like the rest */
    bool busy, ends;
};

/* ---------------------------------------------------------------- the queue */

static struct entry *next_entry(struct CUstream_st *stream)
{
    pthread_mutex_lock(&lock);
    while (!stream->first && !stream->ends)
        pthread_cond_wait(&changed, &lock);
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
    done++;
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

void emulated_queue_function(cudaStream_t stream, cudaHostFn_t *function, void *context)
{
    struct entry *entry = calloc(1, sizeof *entry);
    if (!entry)
        abort();
    *entry = (struct entry){NULL, function, context};
    pthread_mutex_lock(&lock);
    if (stream->first)
        stream->last->next = entry;
    else
        stream->first = entry;
    stream->last = entry;
    queued++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

void emulated_queue_job(cudaStream_t stream, cudaHostFn_t *function, const void *job, size_t bytes)
{
    void *copy = malloc(bytes);
    if (!copy)
        abort();
    memcpy(copy, job, bytes);
    emulated_queue_function(stream, function, copy);
}

/* ---------------------------------------------------------------- what is queued */

static void run_grid(void *context)
{
    struct emulated_grid *grid = context;
    emulated_run_grid(grid);
    free(grid->context);
    free(grid);
}

void emulated_queue_grid(cudaStream_t stream, const struct emulated_grid *grid)
{
    emulated_queue_job(stream, run_grid, grid, sizeof *grid);
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

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    (void)kind;
    emulated_queue_job(stream, copy, &(struct copying){to, from, bytes}, sizeof(struct copying));
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

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t *function, void *context)
{
    emulated_queue_function(stream, function, context);
    return cudaSuccess;
}

/* ---------------------------------------------------------------- streams */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret_stream, unsigned flags)
{
    (void)flags;
    struct CUstream_st *stream = calloc(1, sizeof *stream);
    if (!stream || pthread_create(&stream->thread, NULL, stream_main, stream) != 0) {
        free(stream);
        return cudaErrorMemoryAllocation;
    }
    *ret_stream = stream;
    return cudaSuccess;
}

/* What is queued still runs. */
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    pthread_mutex_lock(&lock);
    stream->ends = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(stream->thread, NULL);
    free(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    pthread_mutex_lock(&lock);
    while (stream->first || stream->busy)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    pthread_mutex_lock(&lock);
    const unsigned long until = queued;
    while (done < until)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

/* ---------------------------------------------------------------- events */

/* A recording, or a stream's wait for one. */
struct mark {
    struct CUevent_st *event;
    unsigned long number;
};

static void queue_mark(cudaStream_t stream, cudaHostFn_t *function, cudaEvent_t event, unsigned long number)
{
    emulated_queue_job(stream, function, &(struct mark){event, number}, sizeof(struct mark));
}

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

static void await_reached(cudaEvent_t event, unsigned long number)
{
    pthread_mutex_lock(&lock);
    while (event->reached < number)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void wait_for(void *context)
{
    struct mark *mark = context;
    await_reached(mark->event, mark->number);
    free(mark);
}

static unsigned long recorded_of(cudaEvent_t event, bool anew)
{
    pthread_mutex_lock(&lock);
    event->recorded += anew;
    const unsigned long number = event->recorded;
    pthread_mutex_unlock(&lock);
    return number;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    (void)flags;
    *event = calloc(1, sizeof **event);
    return *event ? cudaSuccess : cudaErrorMemoryAllocation;
}

/* Once nobody waits for it any more: CUDA, too, keeps what is queued. */
cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    (void)cudaDeviceSynchronize();
    free(event);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    queue_mark(stream, reach, event, recorded_of(event, true));
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    (void)flags;
    queue_mark(stream, wait_for, event, recorded_of(event, false));
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    pthread_mutex_lock(&lock);
    const bool reached = event->reached >= event->recorded;
    pthread_mutex_unlock(&lock);
    return reached ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    await_reached(event, recorded_of(event, false));
    return cudaSuccess;
}
