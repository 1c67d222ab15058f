/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares what the files that implement the CPU as a device share: cpu_device.c, cpu_stream.c and
 * cpu_event.c. No other file includes it. Each stream is a queue with a thread of its own. That
 * thread takes the stream's operations in order and runs each of them together with the device's
 * team of threads (team.h), which works on one operation at a time.
 */
#ifndef COXSWAIN_DEVICE_CPU_CPU_DEVICE_H
#define COXSWAIN_DEVICE_CPU_CPU_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "worker/device/backend.h"
#include "worker/device/cpu/cpu.h"

struct cpu_device {
    struct device base;
    struct team *team;
    const struct gemm_kernel *kernel;
};

/* `recorded` counts records, `completed` follows it. The stream's first error is stored before
 * `completed` is updated. */
struct cpu_event {
    struct device_event base;
    _Atomic uint32_t recorded, completed, sleepers;
    _Atomic bool failed;
    struct error error;
};

struct cpu_command {
    enum { COMMAND_OPERATION, COMMAND_RECORD, COMMAND_WAIT, COMMAND_CALL, COMMAND_COMPUTE, COMMAND_END } kind;
    enum device_operation operation;
    uint32_t ticket; /* value of the event's `recorded` counter */
    struct cpu_event *event;
    device_host_function *function;
    device_host_operation *computes;
    void *context;
    union operation_arguments arguments;
};

/* A chunk of a stream's queue; the chunks of a stream form a ring. */
#define CPU_CHUNK_LENGTH 256
struct cpu_chunk {
    struct cpu_chunk *next;
    uint32_t end; /* value of `queued` when the producer last left the chunk */
    struct cpu_command commands[CPU_CHUNK_LENGTH];
};

/* A queue with one producer (the launching thread) and one consumer (the stream's thread).
 * Counters wrap; 2^32 is a multiple of a chunk's length. */
struct cpu_stream {
    struct device_stream base;
    struct cpu_device *device;
    pthread_t thread;
    struct cpu_event *drained; /* for synchronise */
    struct error error;        /* the first error; only the stream's thread accesses it */
    _Atomic uint32_t queued __attribute__((aligned(64)));
    _Atomic uint32_t consumer_sleeps;
    struct cpu_chunk *filling; /* the producer's */
    _Atomic uint32_t taken __attribute__((aligned(64)));
    struct cpu_chunk *draining; /* the consumer's */
};

extern const struct device_backend cpu_backend;

int cpu_stream_new(struct device *device, struct device_stream **ret_stream, struct error *error);
void cpu_stream_free(struct device_stream *stream);
int cpu_stream_synchronise(struct device_stream *stream, struct error *error);
void cpu_stream_wait(struct device_stream *stream, struct device_event *event);
void cpu_stream_call(struct device_stream *stream, device_host_function *function, void *context);
void cpu_stream_compute(struct device_stream *stream, device_host_operation *function, void *context);
void cpu_launch(struct device_stream *stream, enum device_operation operation, const void *arguments);

int cpu_event_new(struct device *device, struct device_event **ret_event, struct error *error);
void cpu_event_free(struct device_event *event);
void cpu_event_record(struct device_event *event, struct device_stream *stream);
bool cpu_event_is_done(const struct device_event *event);
int cpu_event_wait(struct device_event *event, struct error *error);
/* For the stream's thread: publishes `ticket` with the stream's error; waits until `ticket` is
 * published. */
void cpu_event_complete(struct cpu_event *event, uint32_t ticket, const struct error *error);
void cpu_event_await(struct cpu_event *event, uint32_t ticket);

#endif
