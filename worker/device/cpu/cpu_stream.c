/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/subnormals.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/device/cpu/futex.h"

/* The table of operations: arguments' size, and the function behind a common signature. */
#define X(name)                                                                                                        \
    static void run_##name(const struct cpu_call *call, const union operation_arguments *arguments)                    \
    {                                                                                                                  \
        cpu_##name(call, &arguments->name);                                                                            \
    }
DEVICE_OPERATIONS(X)
#undef X

static const struct {
    size_t size;
    void (*run)(const struct cpu_call *call, const union operation_arguments *arguments);
} operations[OPERATION_COUNT] = {
#define X(name) [OPERATION_##name] = {sizeof(struct name), run_##name},
    DEVICE_OPERATIONS(X)
#undef X
};

static void run_operation(struct cpu_stream *stream, const struct cpu_command *command)
{
    if (stream->error.kind != ERROR_NONE)
        return;
    struct cpu_call call = {
        .team = stream->device->team,
        .kernel = stream->device->kernel,
        .error = &stream->error,
    };
    operations[command->operation].run(&call, &command->arguments);
}

static void run_command(struct cpu_stream *stream, const struct cpu_command *command)
{
    switch (command->kind) {
    case COMMAND_OPERATION:
        run_operation(stream, command);
        break;
    case COMMAND_RECORD:
        cpu_event_complete(command->event, command->ticket, &stream->error);
        break;
    case COMMAND_WAIT:
        cpu_event_await(command->event, command->ticket);
        break;
    case COMMAND_CALL:
        command->function(command->context);
        break;
    case COMMAND_COMPUTE:
        (void)command->computes(command->context, &stream->error);
        break;
    case COMMAND_END:
        break;
    }
}

/* Sleeps until the counter is no longer `seen`. */
static uint32_t await_counter(_Atomic uint32_t *counter, uint32_t seen, _Atomic uint32_t *sleeps)
{
    uint32_t now = spin_while(counter, seen);
    while (now == seen) {
        atomic_store(sleeps, 1);
        futex_wait(counter, seen);
        atomic_store(sleeps, 0);
        now = atomic_load(counter);
    }
    return now;
}

static void *serve(void *context)
{
    struct cpu_stream *stream = context;
    subnormals_flush();
    for (uint32_t next = 0;; next++) {
        await_counter(&stream->queued, next, &stream->consumer_sleeps);
        if (next % CPU_CHUNK_LENGTH == 0)
            stream->draining = stream->draining->next;
        const struct cpu_command *command = &stream->draining->commands[next % CPU_CHUNK_LENGTH];
        run_command(stream, command);
        bool end = command->kind == COMMAND_END;
        atomic_store(&stream->taken, next + 1);
        if (end)
            return NULL;
    }
}

/* Whether the consumer has gone on to the chunk behind it, and will not look at this one before the producer does. */
static bool is_drained(const struct cpu_stream *stream, const struct cpu_chunk *chunk)
{
    return (int32_t)(atomic_load(&stream->taken) - chunk->end) > 0;
}

static void next_chunk(struct cpu_stream *stream, uint32_t queued)
{
    struct cpu_chunk *full = stream->filling;
    full->end = queued;
    if (!is_drained(stream, full->next)) {
        struct cpu_chunk *chunk = memory_allocate(1, sizeof *chunk);
        chunk->next = full->next;
        full->next = chunk;
    }
    stream->filling = full->next;
}

/* The next free slot. It never waits for one: what the stream works on may wait for launches on other streams, which the
 * same thread has yet to make. */
static struct cpu_command *reserve(struct cpu_stream *stream)
{
    uint32_t queued = atomic_load_explicit(&stream->queued, memory_order_relaxed);
    if (queued % CPU_CHUNK_LENGTH == 0)
        next_chunk(stream, queued);
    return &stream->filling->commands[queued % CPU_CHUNK_LENGTH];
}

static void publish(struct cpu_stream *stream)
{
    atomic_fetch_add(&stream->queued, 1);
    if (atomic_load(&stream->consumer_sleeps))
        futex_wake_all(&stream->queued);
}

void cpu_launch(struct device_stream *base, enum device_operation operation, const void *arguments)
{
    struct cpu_stream *stream = (struct cpu_stream *)base;
    struct cpu_command *command = reserve(stream);
    command->kind = COMMAND_OPERATION;
    command->operation = operation;
    memcpy(&command->arguments, arguments, operations[operation].size);
    publish(stream);
}

void cpu_stream_call(struct device_stream *base, device_host_function *function, void *context)
{
    struct cpu_stream *stream = (struct cpu_stream *)base;
    struct cpu_command *command = reserve(stream);
    command->kind = COMMAND_CALL;
    command->function = function;
    command->context = context;
    publish(stream);
}

void cpu_stream_compute(struct device_stream *base, device_host_operation *function, void *context)
{
    struct cpu_stream *stream = (struct cpu_stream *)base;
    struct cpu_command *command = reserve(stream);
    command->kind = COMMAND_COMPUTE;
    command->computes = function;
    command->context = context;
    publish(stream);
}

static void queue_event(struct cpu_stream *stream, int kind, struct cpu_event *event, uint32_t ticket)
{
    struct cpu_command *command = reserve(stream);
    command->kind = kind;
    command->event = event;
    command->ticket = ticket;
    publish(stream);
}

void cpu_event_record(struct device_event *base, struct device_stream *stream)
{
    struct cpu_event *event = (struct cpu_event *)base;
    uint32_t ticket = atomic_fetch_add(&event->recorded, 1) + 1;
    queue_event((struct cpu_stream *)stream, COMMAND_RECORD, event, ticket);
}

void cpu_stream_wait(struct device_stream *stream, struct device_event *base)
{
    struct cpu_event *event = (struct cpu_event *)base;
    queue_event((struct cpu_stream *)stream, COMMAND_WAIT, event, atomic_load(&event->recorded));
}

int cpu_stream_synchronise(struct device_stream *base, struct error *error)
{
    struct cpu_stream *stream = (struct cpu_stream *)base;
    cpu_event_record(&stream->drained->base, base);
    return cpu_event_wait(&stream->drained->base, error);
}

/* Threads of a device take no signals: those are main's business. */
static int start_thread(struct cpu_stream *stream)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&stream->thread, NULL, serve, stream);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

static void release(struct cpu_stream *stream)
{
    struct cpu_chunk *first = stream->filling, *chunk = first->next;
    while (chunk != first) {
        struct cpu_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
    free(first);
    cpu_event_free(&stream->drained->base);
    free(stream);
}

int cpu_stream_new(struct device *device, struct device_stream **ret_stream, struct error *error)
{
    struct cpu_stream *stream = aligned_alloc(64, sizeof *stream);
    if (!stream)
        return error_set(error, ERROR_NO_SPACE, "no memory for a stream");
    memset(stream, 0, sizeof *stream);
    stream->base.backend = &cpu_backend;
    stream->device = (struct cpu_device *)device;
    struct device_event *drained = NULL;
    cpu_event_new(device, &drained, error);
    stream->drained = (struct cpu_event *)drained;
    stream->filling = stream->draining = memory_allocate(1, sizeof *stream->filling);
    stream->filling->next = stream->filling;
    int failed = start_thread(stream);
    if (failed) {
        release(stream);
        return error_set(error, ERROR_UNAVAILABLE, "cannot start the thread of a stream: %s", strerror(failed));
    }
    *ret_stream = &stream->base;
    return 0;
}

void cpu_stream_free(struct device_stream *base)
{
    struct cpu_stream *stream = (struct cpu_stream *)base;
    reserve(stream)->kind = COMMAND_END;
    publish(stream);
    pthread_join(stream->thread, NULL);
    release(stream);
}
