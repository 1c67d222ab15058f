/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/cuda/cuda_device.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/contract/environment.h"
#include "common/memory.h"
#include "worker/device/cuda/cuda_failure.h"
#include "worker/device/gpu_peak.h"

void cuda_device_enter(const struct cuda_device *device)
{
    (void)cudaSetDevice(device->index);
}

int cuda_check_at(cudaError_t result, const char *doing, const struct cuda_place *place, struct error *error)
{
    if (result == cudaSuccess)
        return 0;
    (void)cudaGetLastError(); /* it is reported here, so that a later launch is not taken for failed */
    return cuda_failure_set(result, doing, place, error);
}

int cuda_health_check(const struct cuda_health *health, struct error *error)
{
    if (atomic_load(&health->failed))
        return error_set(error, health->error.kind, "%s", health->error.message);
    if (health->fault->kind == CUDA_FAULT_NONE)
        return 0;
    return error_set(
        error, ERROR_INVALID, "%s %d is outside 0..%lld%s",
        health->fault->kind == CUDA_FAULT_TOKEN ? "token" : "target", health->fault->value,
        (long long)health->fault->limit - 1,
        health->fault->kind == CUDA_FAULT_TOKEN
            ? "; correct the data or enlarge the model's vocabulary"
            : ": the data has a class or token for which the model has no output; correct the data or the model");
}

/* ---------------------------------------------------------------- memory */

static int cuda_allocate(struct device *base, enum device_memory kind, size_t bytes, void **ret_memory,
                         struct error *error)
{
    cuda_device_enter((struct cuda_device *)base);
    void *memory = NULL;
    size_t wanted = bytes ? bytes : 1;
    cudaError_t result =
        kind == MEMORY_SHARED ? cudaHostAlloc(&memory, wanted, cudaHostAllocPortable) : cudaMalloc(&memory, wanted);
    if (result == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        return error_set(error, ERROR_NO_SPACE, "no %s for %zu bytes: %s",
                         kind == MEMORY_SHARED ? "pinned memory" : "memory on the GPU", bytes,
                         cudaGetErrorString(result));
    }
    if (cuda_check_at(result, "taking memory", CUDA_PLACE(kind == MEMORY_SHARED ? "cudaHostAlloc" : "cudaMalloc"),
                      error) < 0)
        return -1;
    if (kind == MEMORY_SHARED) {
        memset(memory, 0, wanted);
    } else if (cuda_check(cudaMemset(memory, 0, wanted), "clearing memory", error) < 0 ||
               cuda_check(cudaStreamSynchronize(NULL), "clearing memory", error) < 0) {
        (void)cudaFree(memory);
        return -1;
    }
    *ret_memory = memory;
    return 0;
}

static void cuda_free(struct device *base, void *memory)
{
    if (atomic_load(&((struct cuda_device *)base)->out_of_bounds))
        return;
    cuda_device_enter((struct cuda_device *)base);
    struct cudaPointerAttributes attributes;
    if (cudaPointerGetAttributes(&attributes, memory) == cudaSuccess && attributes.type == cudaMemoryTypeHost)
        (void)cudaFreeHost(memory);
    else
        (void)cudaFree(memory);
}

static int cuda_memory_room(struct device *base, int64_t *ret_total, int64_t *ret_free, struct error *error)
{
    size_t total = 0, free = 0;
    cuda_device_enter((struct cuda_device *)base);
    if (cuda_check(cudaMemGetInfo(&free, &total), "asking how much memory is free", error) < 0)
        return -1;
    *ret_total = (int64_t)total;
    *ret_free = (int64_t)free;
    return 0;
}

static bool cuda_pin(struct device *base, void *memory, size_t bytes)
{
    cuda_device_enter((struct cuda_device *)base);
    cudaError_t result = cudaHostRegister(memory, bytes, cudaHostRegisterPortable);
    if (result != cudaSuccess)
        (void)cudaGetLastError();
    return result == cudaSuccess;
}

static void cuda_unpin(struct device *base, void *memory)
{
    if (atomic_load(&((struct cuda_device *)base)->out_of_bounds))
        return;
    cuda_device_enter((struct cuda_device *)base);
    (void)cudaHostUnregister(memory);
}

/* ---------------------------------------------------------------- life cycle */

static void cuda_close(struct device *base)
{
    struct cuda_device *device = (struct cuda_device *)base;
    if (atomic_load(&device->out_of_bounds))
        return;
    cuda_device_enter(device);
    if (device->faults)
        (void)cudaFreeHost(device->faults);
    cublas_close(&device->cublas);
    free(device);
}

static const char *cuda_arithmetic(const struct device *base)
{
    return ((const struct cuda_device *)base)->arithmetic;
}

static double cuda_peak_flops(const struct device *base, enum device_peak peak)
{
    const struct cuda_device *device = (const struct cuda_device *)base;
    return gpu_peak_flops(device->name, device->architecture, peak);
}

/* As cuBLASLt does (fused_product.c); kernels read what is rounded. */
static bool cuda_joins_gelus(const struct device *base, enum stored stored)
{
    return ((const struct cuda_device *)base)->cublas.lt != NULL && stored == STORED_BFLOAT16;
}

static struct device_library_work cuda_count_library_work(const struct device *base)
{
    const struct cuda_device *device = (const struct cuda_device *)base;
    return (struct device_library_work){.finished_products = atomic_load(&device->finished_products),
                                        .refused_products = atomic_load(&device->refused_products),
                                        .convolutions = atomic_load(&device->convolutions),
                                        .refused_convolutions = atomic_load(&device->refused_convolutions)};
}

/* The kernels that need least work on every GPU from compute capability 8.0 on. */
static int cuda_check_attention(const struct device *base, int64_t width, enum stored stored, struct error *error)
{
    const struct cuda_device *device = (const struct cuda_device *)base;
    const size_t needed = width > CUDA_ATTENTION_WIDTH_MAX ? 0 : cuda_attention_bytes(width, stored);
    if (width > CUDA_ATTENTION_WIDTH_MAX)
        return error_set(error, ERROR_UNSUPPORTED,
                         "attention head width %lld is not supported on GPUs (maximum %d): take more heads, or "
                         "devices.type: CPU",
                         (long long)width, CUDA_ATTENTION_WIDTH_MAX);
    if (needed > device->shared_bytes)
        return error_set(error, ERROR_UNSUPPORTED,
                         "heads of %lld need %zu KiB of a block's shared memory, and %s has %zu: take more heads, or "
                         "another GPU",
                         (long long)width, (needed + 1023) / 1024, base->description, device->shared_bytes / 1024);
    return 0;
}

const struct device_backend cuda_backend = {
    .memory_is_shared = false,
    .finishes_products = true,
    .communicators = &cuda_communicators,
    .close = cuda_close,
    .arithmetic = cuda_arithmetic,
    .peak_flops = cuda_peak_flops,
    .joins_gelus = cuda_joins_gelus,
    .count_library_work = cuda_count_library_work,
    .check_attention = cuda_check_attention,
    .allocate = cuda_allocate,
    .free = cuda_free,
    .memory_room = cuda_memory_room,
    .stream_bytes = CUDA_SCRATCH_BYTES + CUDA_PATCHES_BYTES,
    .pin = cuda_pin,
    .unpin = cuda_unpin,
    .reach = cuda_reach,
    .stream_new = cuda_stream_new,
    .stream_free = cuda_stream_free,
    .stream_synchronise = cuda_stream_synchronise,
    .stream_wait = cuda_stream_wait,
    .stream_call = cuda_stream_call,
    .launch = cuda_launch,
    .launch_stored = cuda_launch_stored,
    .record_begin = cuda_record_begin,
    .record_end = cuda_record_end,
    .replay = cuda_replay,
    .recording_free = cuda_recording_free,
    .event_new = cuda_event_new,
    .event_free = cuda_event_free,
    .event_record = cuda_event_record,
    .event_is_done = cuda_event_is_done,
    .event_wait = cuda_event_wait,
};

/* CUDA's 13000 */
#define VERSION_MAJOR(version) ((version) / 1000)
#define VERSION_MINOR(version) ((version) % 1000 / 10)

static int refuse_driver(struct error *error)
{
    int version = 0;
    if (cudaDriverGetVersion(&version) != cudaSuccess || version == 0)
        return error_set(error, ERROR_UNSUPPORTED, "no NVIDIA GPU can be used here (there is no driver)");
    return error_set(error, ERROR_UNSUPPORTED,
                     "the NVIDIA driver is too old: it is for CUDA %d.%d, and this worker was built with CUDA %d.%d",
                     VERSION_MAJOR(version), VERSION_MINOR(version), VERSION_MAJOR(CUDART_VERSION),
                     VERSION_MINOR(CUDART_VERSION));
}

int cuda_devices_find(unsigned count, struct error *error)
{
    int there = 0;
    cudaError_t result = cudaGetDeviceCount(&there);
    if (result == cudaErrorInsufficientDriver)
        return refuse_driver(error);
    if (result != cudaErrorNoDevice && cuda_failure_kind(result) == ERROR_DEVICE) /* another node may do */
        return cuda_check_at(result, "looking for GPUs", CUDA_PLACE("cudaGetDeviceCount"), error);
    if (result != cudaSuccess || there == 0)
        return error_set(error, ERROR_UNSUPPORTED, "no NVIDIA GPU can be used here (%s)",
                         result == cudaSuccess ? "none is visible" : cudaGetErrorString(result));
    if ((unsigned)there < count)
        return error_set(error, ERROR_UNSUPPORTED, "there %s only %d of the %u GPUs that devices.count asks for",
                         there == 1 ? "is" : "are", there, count);
    return 0;
}

static int describe(struct cuda_device *device, struct error *error)
{
    struct cudaDeviceProp properties;
    if (cuda_check(cudaGetDeviceProperties(&properties, device->index), "asking for its properties", error) < 0)
        return -1;
    snprintf(device->name, sizeof device->name, "%.*s", (int)sizeof device->name - 1, properties.name);
    device->shared_bytes = properties.sharedMemPerBlockOptin;
    snprintf(device->architecture, sizeof device->architecture, "sm_%d%d", properties.major, properties.minor);
    snprintf(device->base.description, sizeof device->base.description, "GPU %d, %.64s, %.0f GiB", device->index,
             properties.name, (double)properties.totalGlobalMem / (1 << 30));
    return 0;
}

static bool is_wanted(const char *name)
{
    const char *setting = getenv(name);
    return setting && strcmp(setting, "1") == 0;
}

static int open_libraries(struct cuda_device *device, struct error *error)
{
    if (cublas_open(&device->cublas, is_wanted(ENV_GPU_LT), error) < 0)
        return -1;
    return is_wanted(ENV_GPU_DNN) ? cudnn_open(&device->cudnn, error) : 0;
}

/* A library computes other bits than our kernels, and another version of cuDNN may compute others again. */
static void name_arithmetic(struct cuda_device *device)
{
    char dnn[8] = "";
    if (device->cudnn.version)
        snprintf(dnn, sizeof dnn, "+d%d", device->cudnn.version);
    snprintf(device->arithmetic, sizeof device->arithmetic, "%s%s%s", device->architecture, dnn,
             device->cublas.lt ? "+l" : "");
}

static int prepare(struct cuda_device *device, struct error *error)
{
    if (cuda_check(cudaSetDevice(device->index), "opening it", error) < 0 || describe(device, error) < 0 ||
        open_libraries(device, error) < 0)
        return -1;
    name_arithmetic(device);
    void *faults = NULL;
    if (cuda_allocate(&device->base, MEMORY_SHARED, CUDA_STREAMS_MAX * sizeof *device->faults, &faults, error) < 0)
        return -1;
    device->faults = faults;
    for (int i = 0; i < CUDA_STREAMS_MAX; i++)
        device->healths[i].fault = &device->faults[i];
    return 0;
}

/* The driver's threads take no signals: those are main's business. */
int cuda_device_open(const struct device_options *options, struct device **ret_device, struct error *error)
{
    if (cuda_devices_find((unsigned)options->index + 1, error) < 0)
        return -1;
    struct cuda_device *device = memory_allocate(1, sizeof *device);
    device->base.backend = &cuda_backend;
    device->index = options->index;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int result = prepare(device, error);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (result < 0) {
        cuda_close(&device->base);
        return -1;
    }
    *ret_device = &device->base;
    return 0;
}
