/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/device.h"

#include <string.h>

#include "worker/device/backend.h"

static int open_one(const struct device_options *options, struct device **ret_device, struct error *error)
{
    switch (options->type) {
    case DEVICE_TYPE_CPU:
        return cpu_device_open(options, ret_device, error);
    case DEVICE_TYPE_GPU:
        return cuda_device_open(options, ret_device, error);
    default:
        return error_set(error, ERROR_UNSUPPORTED,
                         "devices.type: this worker does not compute on TPUs; take CPU, GPU or Auto");
    }
}

/* Adds what to do to a message that says what is missing; the remedy depends on the requested type. */
static int refuse_gpus(const struct error *cause, struct error *error)
{
    if (cause->kind != ERROR_UNSUPPORTED)
        return error_set(error, cause->kind, "%s", cause->message);
    return error_set(error, ERROR_UNSUPPORTED, "devices.type: %s; write CPU or Auto, or see docs/gpus.md",
                     cause->message);
}

int devices_find_gpus(unsigned count, struct error *error)
{
    struct error cause = ERROR_INIT;
    return cuda_devices_find(count, &cause) == 0 ? 0 : refuse_gpus(&cause, error);
}

int device_open(const struct device_options *options, struct device **ret_device, struct error *error)
{
    struct error cause = ERROR_INIT;
    if (options->type != DEVICE_TYPE_GPU)
        return open_one(options, ret_device, error);
    return open_one(options, ret_device, &cause) == 0 ? 0 : refuse_gpus(&cause, error);
}

static int open_alike(struct device_options options, enum device_type type, unsigned count, struct device **ret_devices,
                      struct error *error)
{
    options.type = type;
    /* Before any is opened: what that takes of a GPU's memory stays taken until the process ends. */
    if (type == DEVICE_TYPE_GPU && cuda_devices_find(count, error) < 0)
        return -1;
    for (unsigned i = 0; i < count; i++) {
        options.index = (int)i;
        if (open_one(&options, &ret_devices[i], error) == 0)
            continue;
        while (i-- > 0)
            device_close(ret_devices[i]);
        return -1;
    }
    return 0;
}

int devices_open(const struct device_options *options, unsigned count, struct device **ret_devices,
                 struct error *ret_against, struct error *error)
{
    struct error cause = ERROR_INIT;
    bool either = options->type == DEVICE_TYPE_AUTO;
    if (!either && options->type != DEVICE_TYPE_GPU)
        return open_alike(*options, options->type, count, ret_devices, error);
    if (open_alike(*options, DEVICE_TYPE_GPU, count, ret_devices, &cause) == 0)
        return 0;
    if (!either || cause.kind != ERROR_UNSUPPORTED)
        return refuse_gpus(&cause, error);
    *ret_against = cause;
    return open_alike(*options, DEVICE_TYPE_CPU, count, ret_devices, error);
}

void device_close(struct device *device)
{
    if (device)
        device->backend->close(device);
}

const char *device_description(const struct device *device)
{
    return device->description;
}

const char *device_arithmetic(const struct device *device)
{
    return device->backend->arithmetic(device);
}

int device_set_arithmetic(struct device *device, const char *arithmetic, struct error *error)
{
    const struct device_backend *backend = device->backend;
    if (strcmp(backend->arithmetic(device), arithmetic) == 0)
        return 0;
    if (backend->set_arithmetic != NULL && backend->set_arithmetic(device, arithmetic))
        return 0;
    return error_set(error, ERROR_DEVICE, "%s has no \"%s\" arithmetic", device->description, arithmetic);
}

bool device_memory_is_shared(const struct device *device)
{
    return device->backend->memory_is_shared;
}

int device_allocate(struct device *device, enum device_memory kind, size_t bytes, void **ret_memory,
                    struct error *error)
{
    return device->backend->allocate(device, kind, bytes, ret_memory, error);
}

void device_free(struct device *device, void *memory)
{
    if (memory)
        device->backend->free(device, memory);
}

bool device_pin(struct device *device, void *memory, size_t bytes)
{
    return device->backend->pin != NULL && device->backend->pin(device, memory, bytes);
}

void device_unpin(struct device *device, void *memory)
{
    device->backend->unpin(device, memory);
}

int device_reach(struct device *device, struct device *other, struct error *error)
{
    if (device->backend->reach == NULL || device->backend != other->backend)
        return 0;
    return device->backend->reach(device, other, error);
}

double device_peak_flops(const struct device *device, enum device_peak peak)
{
    return device->backend->peak_flops == NULL ? 0 : device->backend->peak_flops(device, peak);
}

int device_check_attention(const struct device *device, int64_t width, enum stored stored, struct error *error)
{
    if (device->backend->check_attention == NULL)
        return 0;
    return device->backend->check_attention(device, width, stored, error);
}

int device_memory_room(struct device *device, int64_t *ret_total, int64_t *ret_free, struct error *error)
{
    return device->backend->memory_room(device, ret_total, ret_free, error);
}

int64_t device_stream_bytes(const struct device *device)
{
    return device->backend->stream_bytes;
}

int device_stream_new(struct device *device, struct device_stream **ret_stream, struct error *error)
{
    return device->backend->stream_new(device, ret_stream, error);
}

void device_stream_free(struct device_stream *stream)
{
    if (stream)
        stream->backend->stream_free(stream);
}

int device_stream_synchronise(struct device_stream *stream, struct error *error)
{
    return stream->backend->stream_synchronise(stream, error);
}

void device_stream_wait(struct device_stream *stream, struct device_event *event)
{
    stream->backend->stream_wait(stream, event);
}

void device_stream_call(struct device_stream *stream, device_host_function *function, void *context)
{
    stream->backend->stream_call(stream, function, context);
}

void device_stream_compute(struct device_stream *stream, device_host_operation *function, void *context)
{
    stream->backend->stream_compute(stream, function, context);
}

void device_launch(struct device_stream *stream, enum device_operation operation, const void *arguments)
{
    stream->backend->launch(stream, operation, arguments);
}

bool device_finishes_products(const struct device *device)
{
    return device->backend->finishes_products;
}

bool device_joins_gelus(const struct device *device, enum stored stored)
{
    return device->backend->joins_gelus != NULL && device->backend->joins_gelus(device, stored);
}

struct device_library_work device_count_library_work(const struct device *device)
{
    const struct device_backend *backend = device->backend;
    return backend->count_library_work ? backend->count_library_work(device) : (struct device_library_work){0};
}

bool device_stores(const struct device *device, enum stored stored)
{
    return stored == STORED_FLOAT32 || device->backend->launch_stored != NULL;
}

void device_launch_stored(struct device_stream *stream, enum stored stored, enum device_operation operation,
                          const void *arguments)
{
    if (stored == STORED_FLOAT32)
        stream->backend->launch(stream, operation, arguments);
    else
        stream->backend->launch_stored(stream, stored, operation, arguments);
}

bool device_can_record(const struct device *device)
{
    return device->backend->record_begin != NULL;
}

int device_record_begin(struct device_stream *stream, struct error *error)
{
    return stream->backend->record_begin(stream, error);
}

int device_record_end(struct device_stream *stream, struct device_recording **ret_recording, struct error *error)
{
    return stream->backend->record_end(stream, ret_recording, error);
}

void device_replay(struct device_stream *stream, struct device_recording *recording)
{
    stream->backend->replay(stream, recording);
}

void device_recording_free(struct device_recording *recording)
{
    if (recording)
        recording->backend->recording_free(recording);
}

int device_event_new(struct device *device, struct device_event **ret_event, struct error *error)
{
    return device->backend->event_new(device, ret_event, error);
}

void device_event_free(struct device_event *event)
{
    if (event)
        event->backend->event_free(event);
}

void device_event_record(struct device_event *event, struct device_stream *stream)
{
    event->backend->event_record(event, stream);
}

bool device_event_is_done(const struct device_event *event)
{
    return event->backend->event_is_done(event);
}

int device_event_wait(struct device_event *event, struct error *error)
{
    return event->backend->event_wait(event, error);
}
