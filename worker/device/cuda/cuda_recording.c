/* SPDX-License-Identifier: Apache-2.0
 *
 * Recordings are CUDA graphs, captured from a stream.
 */
#include <stdlib.h>

#include "common/memory.h"
#include "worker/device/cuda/cuda_device.h"

struct cuda_recording {
    struct device_recording base;
    struct cuda_device *device;
    cudaGraphExec_t graph;
};

/* Other threads may do what they like in the meantime, such as allocate, but wait for the GPU as a whole. */
int cuda_record_begin(struct device_stream *base, struct error *error)
{
    struct cuda_stream *stream = (struct cuda_stream *)base;
    cuda_device_enter(stream->device);
    if (cuda_check(cudaStreamBeginCapture(stream->stream, cudaStreamCaptureModeThreadLocal), "capturing", error) < 0)
        return -1;
    stream->records = true;
    error_clear(&stream->record_error);
    return 0;
}

static int instantiate(struct cuda_device *device, cudaGraph_t graph, struct device_recording **ret_recording,
                       struct error *error)
{
    cudaGraphExec_t made = NULL;
    cudaError_t result = cudaGraphInstantiateWithFlags(&made, graph, 0);
    (void)cudaGraphDestroy(graph);
    if (cuda_check_at(result, "making a graph", CUDA_PLACE("cudaGraphInstantiateWithFlags"), error) < 0)
        return -1;
    struct cuda_recording *recording = memory_allocate(1, sizeof *recording);
    *recording = (struct cuda_recording){.base.backend = &cuda_backend, .device = device, .graph = made};
    *ret_recording = &recording->base;
    return 0;
}

int cuda_record_end(struct device_stream *base, struct device_recording **ret_recording, struct error *error)
{
    struct cuda_stream *stream = (struct cuda_stream *)base;
    cudaGraph_t graph = NULL;
    cuda_device_enter(stream->device);
    stream->records = false;
    cudaError_t result = cudaStreamEndCapture(stream->stream, &graph);
    (void)cudaGetLastError(); /* nothing of it was meant to run */
    if (stream->record_error.kind != ERROR_NONE) {
        if (graph)
            (void)cudaGraphDestroy(graph);
        return error_set(error, stream->record_error.kind, "%s", stream->record_error.message);
    }
    if (cuda_check_at(result, "capturing", CUDA_PLACE("cudaStreamEndCapture"), error) < 0)
        return -1;
    return instantiate(stream->device, graph, ret_recording, error);
}

void cuda_replay(struct device_stream *base, struct device_recording *recording)
{
    struct cuda_stream *stream = (struct cuda_stream *)base;
    const struct cuda_call call = {.owner = stream};
    if (atomic_load(&stream->health->failed))
        return;
    cuda_device_enter(stream->device);
    cudaError_t result = cudaGraphLaunch(((struct cuda_recording *)recording)->graph, stream->stream);
    if (result != cudaSuccess)
        cuda_call_fail(&call, result, "cudaGraphLaunch");
}

void cuda_recording_free(struct device_recording *base)
{
    struct cuda_recording *recording = (struct cuda_recording *)base;
    if (atomic_load(&recording->device->out_of_bounds))
        return;
    cuda_device_enter(recording->device);
    (void)cudaGraphExecDestroy(recording->graph);
    free(recording);
}
