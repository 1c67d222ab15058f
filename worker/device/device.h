/* SPDX-License-Identifier: Apache-2.0
 *
 * A device: memory, streams, events and a table of operations (operations.h).
 * The CPU is one (cpu/); a GPU implements the same table.
 *
 * A stream is a queue in order: a launch returns at once and the work is done
 * later. Between streams, and between stream and host, order comes from events
 * only. Work that fails (a bad token, a lost GPU) marks its stream: the first
 * error surfaces at device_stream_synchronise or device_event_wait; what was
 * queued behind it is skipped, events still complete.
 *
 * Life cycle: open -> streams, events, memory -> free them -> close. A stream is
 * launched on by one thread at a time; events may be waited for by any thread.
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
    enum device_type type;  /* DEVICE_TYPE_GPU where there is none: ERROR_UNSUPPORTED; Auto is for devices_open */
    int index;              /* which GPU, or which logical device of the CPU */
    const char *arithmetic; /* CPU: one of device_arithmetic's words, for tests; NULL means the best there is */
    int threads;            /* CPU: 0 means all that this process may use (affinity and cgroup quota) */
};

int device_open(const struct device_options *options, struct device **ret_device, struct error *error);
/* Its streams, events and memory must be gone. */
void device_close(struct device *device);
/* All that a process computes on, index 0 to count - 1, of one kind: Auto takes GPUs where there are so many that can be used, else
 * the CPU; what spoke against GPUs is in `ret_against` then, which is not touched otherwise. On failure none is open. */
int devices_open(const struct device_options *options, unsigned count, struct device **ret_devices,
                 struct error *ret_against, struct error *error);

/* "CPU, 2 threads, AVX-512": for the plan that a person reads. */
const char *device_description(const struct device *device);
/* The instruction set that bits depend on: "avx512", "avx2", "portable", "sm_90". */
const char *device_arithmetic(const struct device *device);
/* From now on, while none of its streams has work. ERROR_DEVICE where it lacks that. */
int device_set_arithmetic(struct device *device, const char *arithmetic, struct error *error);

/* The most that it can compute a second in dense products, FLOP/s; 0 where that is not known, as of CPUs (gpu_peak.h). Whoever
 * asks says in what: float32, TensorFloat-32, or numbers of 16 bits on tensor cores. */
enum device_peak { DEVICE_PEAK_FLOAT32, DEVICE_PEAK_TF32, DEVICE_PEAK_HALF };
double device_peak_flops(const struct device *device, enum device_peak peak);

/* ERROR_UNSUPPORTED where attention of heads so wide, and values stored so, is more than the device can do. */
int device_check_attention(const struct device *device, int64_t width, enum stored stored, struct error *error);

/* CPUs that this process may use: the affinity mask, cut by a cgroup's CPU quota; at least 1. */
int device_available_cpus(void);

/* MEMORY_SHARED can be read and written by host and device alike (a GPU pins it); batches and loss sums live there. */
enum device_memory { MEMORY_DEVICE, MEMORY_SHARED };
/* Whether all memory is shared (a CPU's is), so that nothing need be copied for the host to see it or the device to have it
 * near. Else device_copy goes between the two kinds. */
bool device_memory_is_shared(const struct device *device);
/* Zeroed, aligned to 64 bytes at least; ERROR_NO_SPACE says how much was asked for. */
int device_allocate(struct device *device, enum device_memory kind, size_t bytes, void **ret_memory,
                    struct error *error);
void device_free(struct device *device, void *memory);
/* Memory of the host that is not from here, which copies are then to take as quickly as MEMORY_SHARED: until device_unpin, before
 * the memory goes. False: they take it as it is. */
bool device_pin(struct device *device, void *memory, size_t bytes);
void device_unpin(struct device *device, void *memory);

/* Of devices whose memory is not shared: from here on copies on the device's streams, from the other's memory and to it, go the
 * direct way where the machine has one that is wanted (ENV_GPU_PEERS). Else, as before, by whatever way there is; so they do where
 * this fails, since the direct way has been tried and does not keep what it copies, or cannot be tried: once, it then stays so, and is
 * no failure any more. */
int device_reach(struct device *device, struct device *other, struct error *error);

/* Of a device whose memory is not shared: bytes in all, and those that nobody, here or in another process, has taken. */
int device_memory_room(struct device *device, int64_t *ret_total, int64_t *ret_free, struct error *error);
/* What each stream takes of that. */
int64_t device_stream_bytes(const struct device *device);

int device_stream_new(struct device *device, struct device_stream **ret_stream, struct error *error);
/* Waits for what is queued. */
void device_stream_free(struct device_stream *stream);
int device_stream_synchronise(struct device_stream *stream, struct error *error);

/* An event is done until it is recorded for the first time. Recording again is allowed once nobody waits for it. */
int device_event_new(struct device *device, struct device_event **ret_event, struct error *error);
void device_event_free(struct device_event *event);
void device_event_record(struct device_event *event, struct device_stream *stream);
bool device_event_is_done(const struct device_event *event);
/* Blocks the calling thread; fails with the stream's error when what was recorded behind failed. */
int device_event_wait(struct device_event *event, struct error *error);
/* Later work of `stream` waits for it; the host does not. */
void device_stream_wait(struct device_stream *stream, struct device_event *event);

/* Calls `function` in the stream's order, on a thread of the device: keep it short, launch nothing from it. */
typedef void device_host_function(void *context);
void device_stream_call(struct device_stream *stream, device_host_function *function, void *context);

/* Launches that are queued again and again: made once between device_record_begin and device_record_end, when nothing of them is
 * done, they go onto a stream together with one call, as often as wanted. Arguments are those of then: what differs must be read
 * from device memory (struct step_values). In between that thread launches on that stream, records events there, which each replay
 * then records (once in it), and does nothing else with the device: it waits for nothing, allocates nothing. What an operation does
 * the first time (a library that is set up) cannot be recorded: launch it once before. */
bool device_can_record(const struct device *device);
int device_record_begin(struct device_stream *stream, struct error *error);
/* To be called in any case. Fails where something launched could not be recorded: nothing has been done then, or ever will be. */
int device_record_end(struct device_stream *stream, struct device_recording **ret_recording, struct error *error);
void device_replay(struct device_stream *stream, struct device_recording *recording);
/* Once streams have passed it. Fine for NULL. */
void device_recording_free(struct device_recording *recording);

/* The general launch: `arguments` is the struct that belongs to `operation`. */
void device_launch(struct device_stream *stream, enum device_operation operation, const void *arguments);

/* Whether it gains by a product that makes what follows it, too (dense_forward.gelu, dense_backward_data.gelu_input). */
bool device_finishes_products(const struct device *device);
/* Whether such a product rounds nothing between the two where values lie so: apart they have other bits, whoever cuts a model. */
bool device_joins_gelus(const struct device *device, enum stored stored);
/* Since the device was opened: products that a library has finished (bias, GELU, its way back), and those that it would not;
 * convolutions that one has computed, and those that it would not. A recording's count once, when they are recorded. */
struct device_library_work {
    int64_t finished_products, refused_products;
    int64_t convolutions, refused_convolutions;
};
struct device_library_work device_count_library_work(const struct device *device);

/* Whether values may lie so; and a launch of an operation whose values do as `stored` says. */
bool device_stores(const struct device *device, enum stored stored);
void device_launch_stored(struct device_stream *stream, enum stored stored, enum device_operation operation,
                          const void *arguments);

/* device_dense_forward(stream, &(struct dense_forward){…}) and so on; device_dense_forward_stored(stream, stored, …). */
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
