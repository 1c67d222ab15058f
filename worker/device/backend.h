/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines the functions that each kind of device implements: the CPU (cpu/) and CUDA (cuda/).
 * device.c and communicator.c forward every call of device.h and communicator.h to them through
 * these tables. A member is documented at the function of the same name: `reach` at device_reach in
 * device.h, `prepare` at communicator_prepare in communicator.h. A pointer may be NULL only where
 * its comment says so. A backend's own structs for devices, streams and events begin with struct
 * device, device_stream and device_event.
 */
#ifndef COXSWAIN_DEVICE_BACKEND_H
#define COXSWAIN_DEVICE_BACKEND_H

#include "worker/device/communicator.h"
#include "worker/device/device.h"

/* Records that a thread does not return from a call of NCCL and was abandoned; from then on
 * communicator_is_stuck returns true. */
void communicator_tell_stuck(void);

/* communicator.h */
struct communicator_backend {
    int (*prepare)(struct device *device, struct communicator_capabilities *ret_capabilities, struct error *error);
    int (*identify)(struct device *device, struct communicator_id *ret_id, struct error *error);
    int (*start)(struct device *const *devices, unsigned count, const struct communicator_id *id, unsigned first,
                 unsigned size, struct communicator **ret_communicator, struct error *error);
    int (*poll)(struct communicator *communicator, bool *ret_enqueued, struct error *error);
    int (*enqueue)(struct communicator *communicator, struct device_stream *const *streams,
                   const struct communicator_operation *operations, unsigned count, struct error *error);
    struct communicator *(*part)(struct communicator *communicator, unsigned device);
    int (*abort)(struct communicator *communicator, int64_t deadline_ms, struct error *error);
};

struct device_backend {
    bool memory_is_shared;  /* the host can read and write the device's memory */
    bool finishes_products; /* a matrix product that also computes the GELU after it is faster */
    const struct communicator_backend *communicators; /* NULL: devices of this kind communicate through the host only */
    void (*close)(struct device *device);
    const char *(*arithmetic)(const struct device *device);
    /* Returns false if the device does not support the arithmetic. NULL: it cannot be changed. */
    bool (*set_arithmetic)(struct device *device, const char *arithmetic);
    int (*allocate)(struct device *device, enum device_memory kind, size_t bytes, void **ret_memory,
                    struct error *error);
    void (*free)(struct device *device, void *memory);
    /* NULL if memory is shared. */
    int (*memory_room)(struct device *device, int64_t *ret_total, int64_t *ret_free, struct error *error);
    int64_t stream_bytes; /* bytes of device memory that each stream allocates; 0 if memory is shared */
    /* Both NULL: pinning gains nothing. */
    bool (*pin)(struct device *device, void *memory, size_t bytes);
    void (*unpin)(struct device *device, void *memory);
    /* NULL: device_reach does nothing. */
    int (*reach)(struct device *device, struct device *other, struct error *error);

    /* NULL: the peak is unknown. */
    double (*peak_flops)(const struct device *device, enum device_peak peak);
    /* NULL: always false. */
    bool (*joins_gelus)(const struct device *device, enum stored stored);
    /* NULL: no library computes operations. */
    struct device_library_work (*count_library_work)(const struct device *device);
    /* NULL: heads of any width are supported. */
    int (*check_attention)(const struct device *device, int64_t width, enum stored stored, struct error *error);

    int (*stream_new)(struct device *device, struct device_stream **ret_stream, struct error *error);
    void (*stream_free)(struct device_stream *stream);
    int (*stream_synchronise)(struct device_stream *stream, struct error *error);
    void (*stream_wait)(struct device_stream *stream, struct device_event *event);
    void (*stream_call)(struct device_stream *stream, device_host_function *function, void *context);
    /* NULL if memory is not shared. */
    void (*stream_compute)(struct device_stream *stream, device_host_operation *function, void *context);
    void (*launch)(struct device_stream *stream, enum device_operation operation, const void *arguments);
    /* Launches an operation on values of two bytes; NULL: not supported. */
    void (*launch_stored)(struct device_stream *stream, enum stored stored, enum device_operation operation,
                          const void *arguments);

    /* All four NULL: the device cannot record. */
    int (*record_begin)(struct device_stream *stream, struct error *error);
    int (*record_end)(struct device_stream *stream, struct device_recording **ret_recording, struct error *error);
    void (*replay)(struct device_stream *stream, struct device_recording *recording);
    void (*recording_free)(struct device_recording *recording);

    int (*event_new)(struct device *device, struct device_event **ret_event, struct error *error);
    void (*event_free)(struct device_event *event);
    void (*event_record)(struct device_event *event, struct device_stream *stream);
    bool (*event_is_done)(const struct device_event *event);
    int (*event_wait)(struct device_event *event, struct error *error);
};

struct device {
    const struct device_backend *backend;
    char description[128];
};
struct device_stream {
    const struct device_backend *backend;
};
struct device_event {
    const struct device_backend *backend;
};
struct device_recording {
    const struct device_backend *backend;
};
struct communicator {
    const struct communicator_backend *backend;
};

int cpu_device_open(const struct device_options *options, struct device **ret_device, struct error *error);
/* Checks that the machine has `count` GPUs and a driver for them. This and the next fail with
 * ERROR_UNSUPPORTED if the build, the machine or its libraries have no usable GPU (the message
 * says what is missing), and with ERROR_DEVICE if a GPU is broken. */
int cuda_devices_find(unsigned count, struct error *error);
int cuda_device_open(const struct device_options *options, struct device **ret_device, struct error *error);

#endif
