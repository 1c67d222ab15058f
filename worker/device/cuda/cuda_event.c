/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/memory.h"
#include "worker/device/cuda/cuda_device.h"

int cuda_event_new(struct device *base, struct device_event **ret_event, struct error *error)
{
    struct cuda_device *device = (struct cuda_device *)base;
    cuda_device_enter(device);
    cudaEvent_t made;
    if (cuda_check(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "making an event", error) < 0)
        return -1;
    struct cuda_event *event = memory_allocate(1, sizeof *event);
    event->base.backend = &cuda_backend;
    event->device = device;
    event->event = made;
    *ret_event = &event->base;
    return 0;
}

void cuda_event_free(struct device_event *base)
{
    struct cuda_event *event = (struct cuda_event *)base;
    if (atomic_load(&event->device->out_of_bounds))
        return;
    cuda_device_enter(event->device);
    (void)cudaEventDestroy(event->event);
    free(event);
}

void cuda_event_record(struct device_event *base, struct device_stream *stream)
{
    struct cuda_event *event = (struct cuda_event *)base;
    struct cuda_stream *on = (struct cuda_stream *)stream;
    cuda_device_enter(event->device);
    event->health = on->health;
    if (!on->records) {
        cuda_stream_note(on, cudaEventRecord(event->event, on->stream), "cudaEventRecord");
        return;
    }
    (void)cuda_check(cudaEventRecordWithFlags(event->event, on->stream, cudaEventRecordExternal),
                     "recording an event in a graph", &on->record_error);
}

bool cuda_event_is_done(const struct device_event *base)
{
    const struct cuda_event *event = (const struct cuda_event *)base;
    cuda_device_enter(event->device);
    cudaError_t result = cudaEventQuery(event->event);
    if (result != cudaErrorNotReady)
        return true;
    (void)cudaGetLastError(); /* CUDA keeps it, too, and the next launch would take it for its own */
    return false;
}

int cuda_event_wait(struct device_event *base, struct error *error)
{
    struct cuda_event *event = (struct cuda_event *)base;
    if (atomic_load(&event->device->out_of_bounds))
        return error_set(error, ERROR_TIMEOUT,
                         "GPU: NCCL did not abort and may still use this GPU; the process must end");
    cuda_device_enter(event->device);
    if (cuda_check(cudaEventSynchronize(event->event), "waiting for its work", error) < 0)
        return -1;
    return event->health ? cuda_health_check(event->health, error) : 0;
}
