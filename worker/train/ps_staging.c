/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/ps_staging.h"

#include <stdlib.h>

#include "common/memory.h"

struct ps_staging {
    struct device *device;
    const struct graph *graph;
    struct device_stream *stream; /* of what comes back */
    float *values, *gradients;
    float *host_values, *host_gradients;
    bool values_pinned, gradients_pinned;
};

static size_t bytes_of(const struct graph *graph)
{
    return (size_t)graph_layout(graph)->elements * sizeof(float);
}

static int allocate(struct ps_staging *staging, struct error *error)
{
    size_t bytes = bytes_of(staging->graph);
    if (device_stream_new(staging->device, &staging->stream, error) < 0 ||
        device_allocate(staging->device, MEMORY_DEVICE, bytes, (void **)&staging->values, error) < 0)
        return -1;
    return device_allocate(staging->device, MEMORY_DEVICE, bytes, (void **)&staging->gradients, error);
}

int ps_staging_new(struct device *device, const struct graph *graph, float *host_values, float *host_gradients,
                   struct ps_staging **ret_staging, struct error *error)
{
    struct ps_staging *staging = memory_allocate(1, sizeof *staging);
    staging->device = device;
    staging->graph = graph;
    staging->host_values = host_values;
    staging->host_gradients = host_gradients;
    if (allocate(staging, error) < 0) {
        ps_staging_free(staging);
        return -1;
    }
    staging->values_pinned = device_pin(device, host_values, bytes_of(graph));
    staging->gradients_pinned = device_pin(device, host_gradients, bytes_of(graph));
    *ret_staging = staging;
    return 0;
}

void ps_staging_free(struct ps_staging *staging)
{
    if (staging == NULL)
        return;
    device_stream_free(staging->stream);
    if (staging->values_pinned)
        device_unpin(staging->device, staging->host_values);
    if (staging->gradients_pinned)
        device_unpin(staging->device, staging->host_gradients);
    device_free(staging->device, staging->values);
    device_free(staging->device, staging->gradients);
    free(staging);
}

float *ps_staging_values(struct ps_staging *staging)
{
    return staging->values;
}

float *ps_staging_gradients(struct ps_staging *staging)
{
    return staging->gradients;
}

void ps_staging_bring(struct ps_staging *staging, struct device_stream *stream)
{
    device_copy(stream, &(struct copy){.bytes = (int64_t)bytes_of(staging->graph),
                                       .from = staging->host_values,
                                       .to = staging->values});
}

void ps_staging_take(struct ps_staging *staging)
{
    for (unsigned i = 0; i < graph_bucket_count(staging->graph); i++) {
        struct graph_bucket bucket = graph_bucket(staging->graph, i);
        device_stream_wait(staging->stream, graph_bucket_event(staging->graph, i));
        device_copy(staging->stream, &(struct copy){.bytes = bucket.elements * (int64_t)sizeof(float),
                                                    .from = staging->gradients + bucket.offset,
                                                    .to = staging->host_gradients + bucket.offset});
    }
}

int ps_staging_wait(struct ps_staging *staging, struct error *error)
{
    return device_stream_synchronise(staging->stream, error);
}
