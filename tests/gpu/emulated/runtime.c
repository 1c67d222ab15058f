/* SPDX-License-Identifier: Apache-2.0
 *
 * Emulated GPUs and their memory, which is full of NaNs at first:
 *
 *   EMULATED_GPUS            their number (1)
 *   CUDA_VISIBLE_DEVICES     the numbers of those that the process sees
 *   EMULATED_GPUS_SHARED     1: the bus ids of the GPUs are the same in all processes, so that processes seem to share them (but not
 *                            their memory); otherwise each process has GPUs of its own
 *   EMULATED_GPU_MEMORY      MiB of each (4096)
 *   EMULATED_SHARED_KIB      KiB of dynamic shared memory of a block (227, as compute capability 9.0 has)
 *   EMULATED_NAME            their name ("emulated by the processor")
 *   EMULATED_DRIVER          the CUDA version of the driver (13000); 0: no driver
 *   EMULATED_DRIVER_FAULT    the cudaError_t of cudaGetDeviceCount
 *   EMULATED_PEERS           0: no GPU can access another's memory
 *   EMULATED_PEERS_SPOIL     1: a direct copy between GPUs arrives with a wrong byte, without an error
 *   EMULATED_PAGEABLE        refused: an asynchronous copy fails unless its memory is a device's or pinned; a GPU would make the host
 *                            wait
 *   EMULATED_MEMORY_COUNTS   1: the process reports at its end the most memory that was allocated on one GPU
 *   EMULATED_COPY_COUNTS     1: the process reports at its end how many copies between GPUs were direct and how many were not, and the
 *                            bytes copied to the host
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/gpu/emulated/fault.h"
#include "tests/gpu/emulated/graph.h"
#include "tests/gpu/emulated/stream.h"
#include "tests/gpu/emulated/unwritten.h"

#define DEVICES_MAX 64
#define ALIGNMENT 256

static __thread int current_device;
static __thread cudaError_t last_error;

cudaError_t emulated_fail(cudaError_t error)
{
    last_error = error;
    return error;
}

const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
    case cudaSuccess:
        return "no error";
    case cudaErrorInvalidValue:
        return "invalid argument";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorInvalidConfiguration:
        return "invalid configuration argument";
    case cudaErrorInsufficientDriver:
        return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorInvalidDevice:
        return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle:
        return "invalid resource handle";
    case cudaErrorNotReady:
        return "device not ready";
    case cudaErrorECCUncorrectable:
        return "uncorrectable ECC error encountered";
    case cudaErrorIllegalAddress:
        return "an illegal memory access was encountered";
    case cudaErrorLaunchFailure:
        return "unspecified launch failure";
    case cudaErrorNotSupported:
        return "operation not supported";
    case cudaErrorStreamCaptureUnsupported:
        return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
        return "operation failed due to a previous error during capture";
    case cudaErrorStreamCaptureUnmatched:
        return "the stream is not capturing";
    case cudaErrorStreamCaptureIsolation:
        return "dependency created on uncaptured work in another stream";
    default:
        return "an error without words";
    }
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

/* ---------------------------------------------------------------- devices */

static long setting(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text ? strtol(text, NULL, 10) : otherwise;
}

static size_t memory_of_a_device(void)
{
    return (size_t)setting("EMULATED_GPU_MEMORY", 4096) << 20;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = (int)setting("EMULATED_DRIVER", CUDART_VERSION);
    return cudaSuccess;
}

static size_t shared_bytes_max(void)
{
    const size_t wanted = (size_t)setting("EMULATED_SHARED_KIB", EMULATED_SHARED_BYTES_MAX >> 10) << 10;
    return wanted < EMULATED_SHARED_BYTES_MAX ? wanted : EMULATED_SHARED_BYTES_MAX;
}

/* Lists the machine's numbers of the devices that this process sees, up to the first invalid one. Returns how many. */
static int visible_devices(int numbers[DEVICES_MAX])
{
    const long wanted = setting("EMULATED_GPUS", 1), there = wanted > DEVICES_MAX ? DEVICES_MAX : wanted;
    const char *text = getenv("CUDA_VISIBLE_DEVICES");
    int count = 0;
    if (!text) {
        for (; count < there; count++)
            numbers[count] = count;
        return count;
    }
    char *end = NULL;
    for (; count < DEVICES_MAX; text = end + 1) {
        const long number = strtol(text, &end, 10);
        if (end == text || number < 0 || number >= there)
            return count;
        numbers[count++] = (int)number;
        if (*end != ',')
            return count;
    }
    return count;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    int driver = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver < CUDART_VERSION)
        return emulated_fail(cudaErrorInsufficientDriver);
    const cudaError_t fault = (cudaError_t)setting("EMULATED_DRIVER_FAULT", cudaSuccess);
    if (fault != cudaSuccess)
        return emulated_fail(fault);
    int numbers[DEVICES_MAX];
    *count = visible_devices(numbers);
    return cudaSuccess;
}

static cudaError_t check_device(int device)
{
    int count = 0;
    (void)cudaGetDeviceCount(&count);
    return device >= 0 && device < count ? cudaSuccess : emulated_fail(cudaErrorInvalidDevice);
}

cudaError_t cudaSetDevice(int device)
{
    if (check_device(device) != cudaSuccess)
        return cudaErrorInvalidDevice;
    current_device = device;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = current_device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    if (check_device(device) != cudaSuccess)
        return cudaErrorInvalidDevice;
    *properties = (struct cudaDeviceProp){
        .totalGlobalMem = memory_of_a_device(), .sharedMemPerBlockOptin = shared_bytes_max(), .major = 9, .minor = 0};
    const char *name = getenv("EMULATED_NAME");
    snprintf(properties->name, sizeof properties->name, "%s", name ? name : "emulated by the processor");
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int size, int device)
{
    if (check_device(device) != cudaSuccess)
        return cudaErrorInvalidDevice;
    const int bus = setting("EMULATED_GPUS_SHARED", 0) ? 0 : getpid();
    int numbers[DEVICES_MAX];
    (void)visible_devices(numbers);
    snprintf(text, (size_t)size, "%08x:%02x:00.0", (unsigned)bus, (unsigned)numbers[device]);
    return cudaSuccess;
}

/* ---------------------------------------------------------------- memory */

/* With EMULATED_PEERS=0, no two GPUs have a direct path. */
static bool is_near(int device, int peer)
{
    return device != peer && setting("EMULATED_PEERS", 1);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool reaches[DEVICES_MAX][DEVICES_MAX]; /* by the lock */

struct allocation {
    struct allocation *next;
    void *memory;
    size_t asked, bytes; /* `bytes`: rounded up, as a device counts them */
    struct cudaPointerAttributes attributes;
    bool registered; /* the memory belongs to the caller */
};

static struct allocation *allocations; /* by the lock, like the next three */
static size_t used[DEVICES_MAX], most_used;
static unsigned direct_copies, staged_copies;
static size_t host_bytes;

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    if (check_device(device) != cudaSuccess || check_device(peer) != cudaSuccess)
        return cudaErrorInvalidDevice;
    *can = is_near(device, peer);
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    if (check_device(peer) != cudaSuccess || !is_near(current_device, peer))
        return emulated_fail(cudaErrorInvalidDevice);
    if (flags != 0)
        return emulated_fail(cudaErrorInvalidValue);
    pthread_mutex_lock(&lock);
    const bool already = reaches[current_device][peer];
    reaches[current_device][peer] = true;
    pthread_mutex_unlock(&lock);
    return already ? emulated_fail(cudaErrorPeerAccessAlreadyEnabled) : cudaSuccess;
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
    if (check_device(peer) != cudaSuccess)
        return cudaErrorInvalidDevice;
    pthread_mutex_lock(&lock);
    const bool was = reaches[current_device][peer];
    reaches[current_device][peer] = false;
    pthread_mutex_unlock(&lock);
    return was ? cudaSuccess : emulated_fail(cudaErrorPeerAccessNotEnabled);
}

bool emulated_spoils_copy(int device, const void *to, const void *from, size_t bytes)
{
    struct cudaPointerAttributes there, here;
    const bool spoils = setting("EMULATED_PEERS_SPOIL", 0);
    if ((!spoils && !setting("EMULATED_COPY_COUNTS", 0)) || cudaPointerGetAttributes(&there, to) != cudaSuccess ||
        cudaPointerGetAttributes(&here, from) != cudaSuccess || here.type != cudaMemoryTypeDevice)
        return false;
    const bool between = there.type == cudaMemoryTypeDevice && there.device != here.device;
    pthread_mutex_lock(&lock);
    const bool direct = between && reaches[device][there.device == device ? here.device : there.device];
    direct_copies += direct;
    staged_copies += between && !direct;
    host_bytes += there.type != cudaMemoryTypeDevice ? bytes : 0;
    pthread_mutex_unlock(&lock);
    return direct && spoils;
}

__attribute__((destructor)) static void tell_copies(void)
{
    if (setting("EMULATED_COPY_COUNTS", 0))
        fprintf(stderr, "copies between GPUs: %u direct, %u staged; to the host: %zu bytes\n", direct_copies,
                staged_copies, host_bytes);
}

static cudaError_t allocate(enum cudaMemoryType type, void **memory, size_t bytes)
{
    if (emulated_forbids())
        return emulated_fail(cudaErrorStreamCaptureUnsupported);
    if (emulated_fault() != cudaSuccess)
        return emulated_fail(emulated_fault());
    struct allocation *made = calloc(1, sizeof *made);
    size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    const bool on_device = type == cudaMemoryTypeDevice;
    pthread_mutex_lock(&lock);
    const bool fits =
        bytes <= SIZE_MAX - ALIGNMENT &&
        (!on_device || (rounded <= memory_of_a_device() && used[current_device] <= memory_of_a_device() - rounded));
    void *found = NULL; /* of the exact size, so that the address sanitizer sees an access beyond it */
    if (made && fits && (found = unwritten_new(ALIGNMENT, bytes)) != NULL) {
        *made = (struct allocation){allocations, found, bytes, rounded, {type, current_device}, false};
        allocations = made;
        used[current_device] += on_device ? rounded : 0;
        most_used = used[current_device] > most_used ? used[current_device] : most_used;
    }
    pthread_mutex_unlock(&lock);
    if (!found) {
        free(made);
        return emulated_fail(cudaErrorMemoryAllocation);
    }
    *memory = found;
    return cudaSuccess;
}

static cudaError_t give_back(enum cudaMemoryType type, bool registered, void *memory)
{
    if (emulated_forbids())
        return emulated_fail(cudaErrorStreamCaptureUnsupported);
    pthread_mutex_lock(&lock);
    struct allocation **at = &allocations;
    while (*at && !((*at)->memory == memory && (*at)->attributes.type == type && (*at)->registered == registered))
        at = &(*at)->next;
    struct allocation *found = *at;
    if (found) {
        *at = found->next;
        used[found->attributes.device] -= type == cudaMemoryTypeDevice ? found->bytes : 0;
    }
    pthread_mutex_unlock(&lock);
    if (!found)
        return memory ? emulated_fail(cudaErrorInvalidValue) : cudaSuccess;
    if (!registered)
        unwritten_free(found->memory, found->asked);
    free(found);
    return cudaSuccess;
}

__attribute__((destructor)) static void tell_most_used(void)
{
    if (setting("EMULATED_MEMORY_COUNTS", 0))
        fprintf(stderr, "taken of a GPU: %.1f MiB\n", (double)most_used / (1 << 20));
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
    pthread_mutex_lock(&lock);
    *total = memory_of_a_device();
    *free = *total - used[current_device];
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    return allocate(cudaMemoryTypeDevice, memory, bytes);
}

cudaError_t cudaFree(void *memory)
{
    return give_back(cudaMemoryTypeDevice, false, memory);
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    (void)flags;
    return allocate(cudaMemoryTypeHost, memory, bytes);
}

cudaError_t cudaFreeHost(void *memory)
{
    return give_back(cudaMemoryTypeHost, false, memory);
}

static bool overlaps(const struct allocation *allocation, const void *memory, size_t bytes)
{
    const char *first = memory, *other = allocation->memory;
    return first < other + allocation->bytes && other < first + bytes;
}

cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned flags)
{
    (void)flags;
    if (emulated_forbids())
        return emulated_fail(cudaErrorStreamCaptureUnsupported);
    bool is_new = bytes > 0;
    struct allocation *made = calloc(1, sizeof *made);
    if (!made)
        return emulated_fail(cudaErrorMemoryAllocation);
    pthread_mutex_lock(&lock);
    for (const struct allocation *at = allocations; at; at = at->next)
        is_new &= !overlaps(at, memory, bytes);
    if (is_new) {
        *made = (struct allocation){allocations, memory, bytes, bytes, {cudaMemoryTypeHost, current_device}, true};
        allocations = made;
    }
    pthread_mutex_unlock(&lock);
    if (is_new)
        return cudaSuccess;
    free(made);
    return emulated_fail(cudaErrorInvalidValue);
}

cudaError_t cudaHostUnregister(void *memory)
{
    return give_back(cudaMemoryTypeHost, true, memory);
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *memory)
{
    *attributes = (struct cudaPointerAttributes){cudaMemoryTypeUnregistered, -1};
    pthread_mutex_lock(&lock);
    for (const struct allocation *at = allocations; at; at = at->next)
        if ((const char *)memory >= (const char *)at->memory &&
            (const char *)memory < (const char *)at->memory + at->bytes)
            *attributes = at->attributes;
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

cudaError_t cudaMemset(void *memory, int value, size_t bytes)
{
    memset(memory, value, bytes);
    return cudaSuccess;
}

/* ---------------------------------------------------------------- launches */

#define ATTRIBUTES_MAX 64
static struct {
    void *kernel;
    size_t shared_bytes;
} asked[ATTRIBUTES_MAX]; /* by the lock */

cudaError_t emulated_set_attribute(void *kernel, enum cudaFuncAttribute attribute, int value)
{
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 || (size_t)value > shared_bytes_max())
        return emulated_fail(cudaErrorInvalidValue);
    int i = 0;
    pthread_mutex_lock(&lock);
    while (i < ATTRIBUTES_MAX && asked[i].kernel && asked[i].kernel != kernel)
        i++;
    if (i < ATTRIBUTES_MAX) {
        asked[i].kernel = kernel;
        asked[i].shared_bytes = (size_t)value;
    }
    pthread_mutex_unlock(&lock);
    return i < ATTRIBUTES_MAX ? cudaSuccess : emulated_fail(cudaErrorInvalidValue);
}

static size_t shared_bytes_allowed(const void *kernel)
{
    size_t allowed =
        EMULATED_SHARED_BYTES_UNASKED < shared_bytes_max() ? EMULATED_SHARED_BYTES_UNASKED : shared_bytes_max();
    pthread_mutex_lock(&lock);
    for (int i = 0; i < ATTRIBUTES_MAX; i++)
        if (asked[i].kernel == kernel)
            allowed = asked[i].shared_bytes;
    pthread_mutex_unlock(&lock);
    return allowed;
}

static bool grid_is_valid(const struct emulated_grid *grid)
{
    const struct emulated_place *blocks = &grid->blocks, *threads = &grid->threads;
    return blocks->x > 0 && blocks->y > 0 && blocks->z > 0 && blocks->x <= 0x7fffffff && blocks->y <= 65535 &&
           blocks->z <= 65535 && threads->x > 0 && threads->y > 0 && threads->z > 0 && threads->z <= 64 &&
           (uint64_t)threads->x * threads->y * threads->z <= EMULATED_THREADS_MAX &&
           grid->shared_bytes <= shared_bytes_allowed(grid->kernel);
}

cudaError_t emulated_launch(cudaStream_t stream, const struct emulated_grid *grid)
{
    const bool is_valid = grid_is_valid(grid);
    if (emulated_fault() != cudaSuccess)
        return emulated_fail(emulated_fault());
    if (!is_valid || emulated_stream_device(stream) != current_device) {
        return emulated_fail(is_valid ? cudaErrorInvalidResourceHandle : cudaErrorInvalidConfiguration);
    }
    emulated_queue_grid(stream, grid);
    return cudaSuccess;
}
