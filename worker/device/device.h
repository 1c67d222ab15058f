/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes on a CPU or a GPU, through one interface for both: memory, streams, events and
 * operations (operations.h). cpu/ and cuda/ implement it (backend.h). Models, optimizers and
 * strategies use it.
 *
 * A stream is a queue that does its work in order: a launch returns at once and the work is done
 * later. Only events order the work of different streams, or of a stream and the host. Work that
 * fails (an invalid token, a lost GPU) marks its stream: device_stream_synchronise and
 * device_event_wait return the stream's first error. What was queued behind the failed work is
 * skipped, but events still complete.
 *
 * Life cycle: open a device, create streams, events and memory, free all of them, close the device.
 * One thread at a time may launch on a stream; any thread may wait for an event.
 */
#ifndef COXSWAIN_DEVICE_DEVICE_H
#define COXSWAIN_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/job/job_document.h"
#include "worker/device/operations.h"

struct device;
struct device_stream;
struct device_event;
struct device_recording;

struct device_options {
    enum device_type type; /* CPU or GPU; Auto is for devices_open only */
    int index;             /* which GPU, or which logical device of the CPU */
    const char
        *arithmetic; /* CPU, for tests: an instruction set as device_arithmetic names it; NULL: the best available */
    int threads;     /* CPU: 0 means all CPUs that this process may use (affinity and cgroup quota) */
};

/* Checks that the machine has so many usable GPUs, and opens none. Fails with the error of devices_open. */
int devices_find_gpus(unsigned count, struct error *error);
/* Opens one device. ERROR_UNSUPPORTED: the machine has no such GPU. */
int device_open(const struct device_options *options, struct device **ret_device, struct error *error);
/* Closes the device. The caller has freed its streams, events and memory. */
void device_close(struct device *device);
/* Opens `count` devices of one type, with index 0 to count - 1. Auto takes GPUs if the machine
 * has that many usable ones, else the CPU; only in the latter case `ret_against` says why not
 * GPUs. On failure no device is left open. */
int devices_open(const struct device_options *options, unsigned count, struct device **ret_devices,
                 struct error *ret_against, struct error *error);

/* Describes the device for people: "CPU, 2 threads, AVX-512". */
const char *device_description(const struct device *device);
/* Names the arithmetic that bits of results depend on: "avx512", "avx2", "portable", "sm_90". */
const char *device_arithmetic(const struct device *device);
/* Changes the arithmetic, while no stream has work. ERROR_DEVICE: the device does not have it. */
int device_set_arithmetic(struct device *device, const char *arithmetic, struct error *error);

/* Returns the peak rate of dense products in FLOP/s, in float32, TensorFloat-32 or 16-bit
 * numbers on tensor cores; 0 if it is unknown, as for CPUs (gpu_peak.h). */
enum device_peak { DEVICE_PEAK_FLOAT32, DEVICE_PEAK_TF32, DEVICE_PEAK_HALF };
double device_peak_flops(const struct device *device, enum device_peak peak);

/* Fails with ERROR_UNSUPPORTED if the device cannot compute attention with heads of that width,
 * on values stored like that. */
int device_check_attention(const struct device *device, int64_t width, enum stored stored, struct error *error);

/* Counts the CPUs that this process may use: the affinity mask, cut by a cgroup's CPU quota; at
 * least 1. */
int device_available_cpus(void);

/* Host and device can both access MEMORY_SHARED (pinned host memory with a GPU); it holds
 * batches and loss sums. */
enum device_memory { MEMORY_DEVICE, MEMORY_SHARED };
/* Returns whether host and device access the same memory, as with a CPU. Otherwise device_copy
 * moves data between the two kinds. */
bool device_memory_is_shared(const struct device *device);
/* Allocates zeroed memory, aligned to at least 64 bytes. ERROR_NO_SPACE: the message says how
 * much was requested. */
int device_allocate(struct device *device, enum device_memory kind, size_t bytes, void **ret_memory,
                    struct error *error);
/* Frees memory from device_allocate; NULL is allowed. */
void device_free(struct device *device, void *memory);
/* Pins host memory that device_allocate did not allocate, so that copies of it are as fast as of
 * MEMORY_SHARED. If it returns true, call device_unpin before the memory is freed. False: it could
 * not be pinned (a CPU's never is); copies work all the same, and device_unpin must not be called. */
bool device_pin(struct device *device, void *memory, size_t bytes);
void device_unpin(struct device *device, void *memory);

/* Enables direct copies between two GPUs on this device's streams, if the machine has a direct
 * path and ENV_GPU_PEERS allows it. Otherwise, and after a failure, copies go through the host.
 * Fails once if a trial of the direct path corrupts data or cannot run; later calls for that
 * pair return 0. */
int device_reach(struct device *device, struct device *other, struct error *error);

/* Reports the bytes of memory of a GPU in total, and those that no process has allocated. Not for a CPU. */
int device_memory_room(struct device *device, int64_t *ret_total, int64_t *ret_free, struct error *error);
/* Returns how many bytes of a GPU's memory each stream allocates; 0 for a CPU. */
int64_t device_stream_bytes(const struct device *device);

int device_stream_new(struct device *device, struct device_stream **ret_stream, struct error *error);
/* Waits for the queued work, then frees the stream. */
void device_stream_free(struct device_stream *stream);
int device_stream_synchronise(struct device_stream *stream, struct error *error);

/* A new event counts as done until it is first recorded. It may be recorded again once no thread or stream waits for it. */
int device_event_new(struct device *device, struct device_event **ret_event, struct error *error);
void device_event_free(struct device_event *event);
void device_event_record(struct device_event *event, struct device_stream *stream);
bool device_event_is_done(const struct device_event *event);
/* Blocks the calling thread until the event is done; fails with the error of the stream that it
 * was recorded on. */
int device_event_wait(struct device_event *event, struct error *error);
/* Makes later work of `stream` wait for the event; the host does not wait. */
void device_stream_wait(struct device_stream *stream, struct device_event *event);

/* Calls `function` in the stream's order, on a thread of the device: keep it short, launch
 * nothing from it. */
typedef void device_host_function(void *context);
void device_stream_call(struct device_stream *stream, device_host_function *function, void *context);

/* Computes on the host in the stream's order, like an operation: a failure of `function` fails the stream. It is called
 * in any case, so that it can release `context`; if the stream has failed before, `error` says so already and the
 * function must not compute. Only for devices that share the host's memory. */
typedef int device_host_operation(void *context, struct error *error);
void device_stream_compute(struct device_stream *stream, device_host_operation *function, void *context);

/* A recording holds launches that are queued together with one call, as often as wanted (CUDA
 * graphs). Launches between device_record_begin and device_record_end are recorded and not
 * executed. Their arguments are fixed: what changes between replays must be read from device
 * memory (struct step_values). While it records, the thread only launches on that stream and
 * records events there, each at most once; it does not wait or allocate. An operation's first
 * launch may set up a library, which cannot be recorded: launch it once before. */
bool device_can_record(const struct device *device);
int device_record_begin(struct device_stream *stream, struct error *error);
/* Must follow every device_record_begin. Fails if a launch could not be recorded; then none of
 * the launches is executed. */
int device_record_end(struct device_stream *stream, struct device_recording **ret_recording, struct error *error);
void device_replay(struct device_stream *stream, struct device_recording *recording);
/* Frees a recording that no stream has queued any more. NULL is allowed. */
void device_recording_free(struct device_recording *recording);

/* Launches an operation; `arguments` is the struct of its name. */
void device_launch(struct device_stream *stream, enum device_operation operation, const void *arguments);

/* Returns whether a product that also computes the GELU after it is faster (dense_forward.gelu,
 * dense_backward_data.gelu_input). */
bool device_finishes_products(const struct device *device);
/* Returns whether such a product does not round between product and GELU, for values stored like
 * that. Then product and GELU must stay on one device, because two launches give other bits. */
bool device_joins_gelus(const struct device *device, enum stored stored);
/* Counts, since the device was opened, the products that a library finished (bias, GELU, GELU's
 * gradient) or refused to, and the convolutions that a library computed or refused. Recorded
 * launches count once, when they are recorded. */
struct device_library_work {
    int64_t finished_products, refused_products;
    int64_t convolutions, refused_convolutions;
};
struct device_library_work device_count_library_work(const struct device *device);

/* Returns whether the device supports operations on values that are stored in this format (float32, bfloat16 or float16). */
bool device_stores(const struct device *device, enum stored stored);
/* Launches an operation, like device_launch, on values that are stored in this format. */
void device_launch_stored(struct device_stream *stream, enum stored stored, enum device_operation operation,
                          const void *arguments);

/* device_dense_forward(stream, &(struct dense_forward){…}) and so on;
 * device_dense_forward_stored(stream, stored, …). */
#define X(name)                                                                                                        \
    static inline void device_##name(struct device_stream *stream, const struct name *arguments)                       \
    {                                                                                                                  \
        device_launch(stream, OPERATION_##name, arguments);                                                            \
    }                                                                                                                  \
    static inline void device_##name##_stored(struct device_stream *stream, enum stored stored,                        \
                                              const struct name *arguments)                                            \
    {                                                                                                                  \
        device_launch_stored(stream, stored, OPERATION_##name, arguments);                                             \
    }
DEVICE_OPERATIONS(X)
#undef X

#endif
