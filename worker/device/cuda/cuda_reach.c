/* SPDX-License-Identifier: Apache-2.0
 *
 * The direct way between two GPUs, tried before anything is left to it: on Linux without a virtual machine and with the IOMMU on,
 * copies over PCIe from GPU to GPU may come out wrong without a word, though the driver says that they can be had.
 */
#include <stdlib.h>
#include <string.h>

#include "common/contract/environment.h"
#include "worker/device/cuda/cuda_device.h"

#define TRIAL_BYTES 65536

struct trial {
    struct device *device, *other;
    cudaStream_t stream;
    unsigned char *host; /* what goes out, and behind it what comes back */
    void *here, *there;
};

/* No two rows of 256 bytes are alike, and no byte is what new memory has. */
static unsigned char byte_at(size_t i)
{
    return (unsigned char)(1 + (i * 7 + (i >> 8) * 31) % 255);
}

static cudaError_t copy(const struct trial *trial, void *to, const void *from)
{
    return cudaMemcpyAsync(to, from, TRIAL_BYTES, cudaMemcpyDefault, trial->stream);
}

static int copy_there_and_back(const struct trial *trial, struct error *error)
{
    unsigned char *sent = trial->host, *returned = sent + TRIAL_BYTES;
    for (size_t i = 0; i < TRIAL_BYTES; i++)
        sent[i] = byte_at(i);
    if (cuda_check(copy(trial, trial->here, sent), "copying to a GPU", error) < 0 ||
        cuda_check(copy(trial, trial->there, trial->here), "copying to another GPU", error) < 0 ||
        cuda_check(cudaMemsetAsync(trial->here, 0, TRIAL_BYTES, trial->stream), "clearing memory", error) < 0 ||
        cuda_check(copy(trial, trial->here, trial->there), "copying from another GPU", error) < 0 ||
        cuda_check(copy(trial, returned, trial->here), "copying from a GPU", error) < 0 ||
        cuda_check(cudaStreamSynchronize(trial->stream), "copying between GPUs", error) < 0)
        return -1;
    if (memcmp(sent, returned, TRIAL_BYTES) != 0)
        return error_set(error, ERROR_DEVICE, "data that is copied directly between them arrives changed");
    return 0;
}

static int try_way(struct trial *trial, struct error *error)
{
    if (device_allocate(trial->device, MEMORY_SHARED, 2 * (size_t)TRIAL_BYTES, (void **)&trial->host, error) < 0 ||
        device_allocate(trial->other, MEMORY_DEVICE, TRIAL_BYTES, &trial->there, error) < 0 ||
        device_allocate(trial->device, MEMORY_DEVICE, TRIAL_BYTES, &trial->here, error) < 0 ||
        cuda_check(cudaStreamCreateWithFlags(&trial->stream, cudaStreamNonBlocking), "making a stream", error) < 0)
        return -1;
    return copy_there_and_back(trial, error);
}

static void end_trial(struct trial *trial)
{
    cuda_device_enter((struct cuda_device *)trial->device);
    if (trial->stream) {
        (void)cudaStreamSynchronize(trial->stream);
        (void)cudaStreamDestroy(trial->stream);
    }
    device_free(trial->device, trial->here);
    device_free(trial->other, trial->there);
    device_free(trial->device, trial->host);
}

/* False: there is none, or it has been tried already. */
static bool open_way(const struct cuda_device *device, int peer)
{
    int can = 0;
    cuda_device_enter(device);
    cudaError_t result = cudaDeviceCanAccessPeer(&can, device->index, peer);
    if (result == cudaSuccess && can)
        result = cudaDeviceEnablePeerAccess(peer, 0);
    if (result != cudaSuccess)
        (void)cudaGetLastError();
    return result == cudaSuccess && can;
}

static void close_way(const struct cuda_device *device, int peer)
{
    cuda_device_enter(device);
    if (cudaDeviceDisablePeerAccess(peer) != cudaSuccess)
        (void)cudaGetLastError();
}

/* Whether it is to be tried: not what has failed once, and been told. */
static bool is_in_question(const struct cuda_device *device, int peer)
{
    const char *wanted = getenv(ENV_GPU_PEERS);
    return (wanted == NULL || strcmp(wanted, "0") != 0) && !(peer < CUDA_GPUS_MAX && device->spoils[peer]);
}

int cuda_reach(struct device *base, struct device *other, struct error *error)
{
    struct cuda_device *device = (struct cuda_device *)base;
    int peer = ((const struct cuda_device *)other)->index;
    struct trial trial = {.device = base, .other = other};
    if (!is_in_question(device, peer) || !open_way(device, peer))
        return 0;
    int result = try_way(&trial, error);
    end_trial(&trial);
    if (result == 0)
        return 0;
    close_way(device, peer);
    if (peer < CUDA_GPUS_MAX)
        device->spoils[peer] = true;
    return error_wrap(error, "GPU %d and GPU %d copy to each other by way of the host", device->index, peer);
}
