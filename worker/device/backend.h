/* SPDX-License-Identifier: Apache-2.0
 *
 * What a kind of device implements; device.c hands every call of device.h on to
 * it. Each backend embeds the structs below as the first member of its own.
 */
#ifndef COXSWAIN_DEVICE_BACKEND_H
#define COXSWAIN_DEVICE_BACKEND_H

#include "worker/device/device.h"

struct device_backend {
    bool memory_is_shared;
    void (*close)(struct device *device);
    const char *(*arithmetic)(const struct device *device);
    int (*allocate)(struct device *device, enum device_memory kind, size_t bytes, void **ret_memory,
                    struct error *error);
    void (*free)(struct device *device, void *memory);

    int (*stream_new)(struct device *device, struct device_stream **ret_stream, struct error *error);
    void (*stream_free)(struct device_stream *stream);
    int (*stream_synchronise)(struct device_stream *stream, struct error *error);
    void (*stream_wait)(struct device_stream *stream, struct device_event *event);
    void (*stream_call)(struct device_stream *stream, device_host_function *function, void *context);
    void (*launch)(struct device_stream *stream, enum device_operation operation, const void *arguments);

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

int cpu_device_open(const struct device_options *options, struct device **ret_device, struct error *error);
/* ERROR_UNSUPPORTED where the build, the machine or its libraries have no GPU to offer. */
int cuda_device_open(const struct device_options *options, struct device **ret_device, struct error *error);

#endif
