/* SPDX-License-Identifier: Apache-2.0
 *
 * Joins GPUs of one or several processes into a group, by NCCL. Each GPU of this process has a communicator of its own, and calls to them
 * are grouped, since each waits for its peers among the others. Calls do not block: a call may return ncclInProgress, and until
 * ncclCommGetAsyncError reports otherwise for all communicators, only that function and ncclCommAbort are called.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/condition.h"
#include "common/fnv1a.h"
#include "common/memory.h"
#include "worker/device/cuda/cuda_device.h"

#define PLACE_TEXT_MAX 64
/* How long to wait for the communicators of a group that failed to form. */
#define ABANDON_MS 5000

struct cuda_communicator;

struct cuda_rank {
    struct cuda_communicator *communicator;
    struct cuda_device *device;
    ncclComm_t comm;
    pthread_t thread; /* runs ncclCommAbort */
};

struct cuda_communicator {
    struct communicator base;
    const struct nccl *nccl;
    struct cuda_rank *ranks; /* of this process, one per device */
    unsigned count;
    struct cuda_communicator *parts; /* one communicator per rank; NULL: this is such a part */
    /* Shared by communicator_abort and the threads that run ncclCommAbort: */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned gone;
};

/* ---------------------------------------------------------------- errors */

/* Errors of links and peers may be caused at either end; the crew's coordinator decides which. */
static enum error_kind kind_of(ncclResult_t result)
{
    switch (result) {
    case ncclInvalidArgument:
    case ncclInvalidUsage:
        return ERROR_UNSUPPORTED;
    case ncclUnhandledCudaError:
        return ERROR_DEVICE;
    default:
        return ERROR_UNAVAILABLE;
    }
}

static int check(const struct nccl *nccl, ncclResult_t result, const char *what, struct error *error)
{
    if (result == ncclSuccess || result == ncclInProgress)
        return 0;
    const char *detail = nccl->ncclGetLastError(NULL);
    return error_set(error, kind_of(result), "NCCL: %s: %s%s%s (NCCL_DEBUG=INFO tells more)", what,
                     nccl->ncclGetErrorString(result), detail && *detail ? ": " : "", detail ? detail : "");
}

/* ---------------------------------------------------------------- before there is a group */

static int find_place(const struct cuda_device *device, uint64_t *ret_place, struct error *error)
{
    char text[PLACE_TEXT_MAX] = "";
    if (cuda_check(cudaDeviceGetPCIBusId(text, sizeof text, device->index), "asking where it is", error) < 0)
        return -1;
    *ret_place = fnv1a(FNV1A_START, text);
    return 0;
}

static bool shared_gpus_are_allowed(const struct nccl *nccl)
{
    const char *setting = getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    return nccl->version >= NCCL_VERSION_SHARED_GPU && setting && strcmp(setting, "1") == 0;
}

static int prepare(struct device *base, struct communicator_capabilities *ret_capabilities, struct error *error)
{
    struct cuda_device *device = (struct cuda_device *)base;
    struct communicator_capabilities capabilities;
    cuda_device_enter(device);
    if (!device->nccl.library && nccl_open(&device->nccl, error) < 0)
        return -1;
    if (find_place(device, &capabilities.place, error) < 0)
        return -1;
    capabilities.version = device->nccl.version;
    capabilities.may_share_device = shared_gpus_are_allowed(&device->nccl);
    *ret_capabilities = capabilities;
    return 0;
}

/* Blocks all signals, so that threads that NCCL creates receive none: the main thread handles
 * them. */
static void hold_signals(sigset_t *ret_before)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, ret_before);
}

static void release_signals(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

static int identify(struct device *base, struct communicator_id *ret_id, struct error *error)
{
    const struct nccl *nccl = &((struct cuda_device *)base)->nccl;
    ncclUniqueId id;
    sigset_t before;
    hold_signals(&before);
    ncclResult_t result = nccl->ncclGetUniqueId(&id);
    release_signals(&before);
    if (check(nccl, result, "naming a group", error) < 0)
        return -1;
    memcpy(ret_id->bytes, id.internal, sizeof id.internal);
    return 0;
}

/* ---------------------------------------------------------------- groups of calls */

static bool goes_on(ncclResult_t result)
{
    return result == ncclSuccess || result == ncclInProgress;
}

/* Ends a group. A group must always be ended, or the thread would stay in it. */
static ncclResult_t end_group(const struct nccl *nccl, ncclResult_t result)
{
    ncclResult_t end = nccl->ncclGroupEnd();
    return goes_on(result) ? end : result;
}

/* ---------------------------------------------------------------- life cycle */

static void free_communicator(struct cuda_communicator *communicator)
{
    pthread_cond_destroy(&communicator->changed);
    pthread_mutex_destroy(&communicator->lock);
    free(communicator->parts);
    free(communicator->ranks);
    free(communicator);
}

static struct cuda_communicator *make_communicator(struct device *const *devices, unsigned count)
{
    struct cuda_communicator *communicator = memory_allocate(1, sizeof *communicator);
    communicator->base.backend = &cuda_communicators;
    communicator->nccl = &((const struct cuda_device *)devices[0])->nccl;
    communicator->ranks = memory_allocate(count, sizeof *communicator->ranks);
    communicator->parts = memory_allocate(count, sizeof *communicator->parts);
    communicator->count = count;
    for (unsigned i = 0; i < count; i++) {
        communicator->ranks[i] =
            (struct cuda_rank){.communicator = communicator, .device = (struct cuda_device *)devices[i]};
        communicator->parts[i] = (struct cuda_communicator){
            .base = communicator->base, .nccl = communicator->nccl, .ranks = &communicator->ranks[i], .count = 1};
    }
    pthread_mutex_init(&communicator->lock, NULL);
    condition_init(&communicator->changed);
    return communicator;
}

static ncclResult_t join_all(struct cuda_communicator *communicator, ncclUniqueId name, unsigned first, unsigned size)
{
    ncclConfig_t config = NCCL_CONFIG_NON_BLOCKING;
    const struct nccl *nccl = communicator->nccl;
    ncclResult_t result = nccl->ncclGroupStart();
    if (result != ncclSuccess)
        return result;
    for (unsigned i = 0; i < communicator->count && goes_on(result); i++) {
        struct cuda_rank *rank = &communicator->ranks[i];
        cuda_device_enter(rank->device);
        result = nccl->ncclCommInitRankConfig(&rank->comm, (int)size, name, (int)(first + i), &config);
    }
    return end_group(nccl, result);
}

/* Aborts one communicator, on a thread of its own, because the call may not return. */
static void *abort_comm(void *context)
{
    struct cuda_rank *rank = context;
    struct cuda_communicator *communicator = rank->communicator;
    cuda_device_enter(rank->device);
    if (rank->comm != NULL) /* it was made */
        (void)communicator->nccl->ncclCommAbort(rank->comm);
    pthread_mutex_lock(&communicator->lock);
    communicator->gone++;
    pthread_cond_signal(&communicator->changed);
    pthread_mutex_unlock(&communicator->lock);
    return NULL;
}

/* Starts all aborts at once, because one may wait for another. Returns how many have started. */
static unsigned start_aborts(struct cuda_communicator *communicator)
{
    unsigned begun = 0;
    sigset_t before;
    hold_signals(&before);
    while (begun < communicator->count &&
           pthread_create(&communicator->ranks[begun].thread, NULL, abort_comm, &communicator->ranks[begun]) == 0)
        begun++;
    release_signals(&before);
    return begun;
}

static bool await_aborts(struct cuda_communicator *communicator, int64_t deadline_ms)
{
    int64_t until_ns = clock_monotonic_ns() + deadline_ms * 1000000;
    bool waits = true;
    pthread_mutex_lock(&communicator->lock);
    while (communicator->gone < communicator->count && waits)
        waits = condition_wait_until(&communicator->changed, &communicator->lock, until_ns);
    bool gone = communicator->gone == communicator->count;
    pthread_mutex_unlock(&communicator->lock);
    return gone;
}

static int abort_communicator(struct communicator *base, int64_t deadline_ms, struct error *error)
{
    struct cuda_communicator *communicator = (struct cuda_communicator *)base;
    if (start_aborts(communicator) < communicator->count || !await_aborts(communicator, deadline_ms)) {
        for (unsigned i = 0; i < communicator->count; i++)
            atomic_store(&communicator->ranks[i].device->out_of_bounds, true);
        communicator_tell_stuck();
        return error_set(error, ERROR_TIMEOUT,
                         "NCCL did not abort within %lld ms after a peer was lost; this process cannot join a new crew",
                         (long long)deadline_ms);
    }
    for (unsigned i = 0; i < communicator->count; i++)
        pthread_join(communicator->ranks[i].thread, NULL);
    free_communicator(communicator);
    return 0;
}

static int start(struct device *const *devices, unsigned count, const struct communicator_id *id, unsigned first,
                 unsigned size, struct communicator **ret_communicator, struct error *error)
{
    struct cuda_communicator *communicator = make_communicator(devices, count);
    ncclUniqueId name;
    sigset_t before;
    memcpy(name.internal, id->bytes, sizeof name.internal);
    hold_signals(&before);
    ncclResult_t result = join_all(communicator, name, first, size);
    release_signals(&before);
    if (check(communicator->nccl, result, "forming a group", error) < 0) {
        (void)abort_communicator(&communicator->base, ABANDON_MS, NULL); /* some of them may be there */
        return -1;
    }
    *ret_communicator = &communicator->base;
    return 0;
}

/* ---------------------------------------------------------------- work */

static int poll_communicator(struct communicator *base, bool *ret_enqueued, struct error *error)
{
    const struct cuda_communicator *communicator = (const struct cuda_communicator *)base;
    const struct nccl *nccl = communicator->nccl;
    bool enqueued = true;
    for (unsigned i = 0; i < communicator->count; i++) {
        ncclResult_t state = ncclSuccess;
        if (check(nccl, nccl->ncclCommGetAsyncError(communicator->ranks[i].comm, &state), "asking for its state",
                  error) < 0 ||
            check(nccl, state, "the crew's GPUs", error) < 0)
            return -1;
        enqueued &= state == ncclSuccess;
    }
    *ret_enqueued = enqueued;
    return 0;
}

static ncclResult_t queue_one(const struct cuda_communicator *communicator, struct device_stream *const *streams,
                              const struct communicator_operation *operation)
{
    const struct nccl *nccl = communicator->nccl;
    ncclComm_t comm = communicator->ranks[operation->device].comm;
    cudaStream_t stream = ((const struct cuda_stream *)streams[operation->device])->stream;
    switch (operation->kind) {
    case COMMUNICATOR_SUM:
        return nccl->ncclAllReduce(operation->vector, operation->vector, operation->elements, ncclFloat32, ncclSum,
                                   comm, stream);
    case COMMUNICATOR_SEND:
        return nccl->ncclSend(operation->vector, operation->elements, ncclFloat32, (int)operation->peer, comm, stream);
    case COMMUNICATOR_RECEIVE:
        return nccl->ncclRecv(operation->vector, operation->elements, ncclFloat32, (int)operation->peer, comm, stream);
    }
    return ncclInvalidArgument;
}

static ncclResult_t queue_all(const struct cuda_communicator *communicator, struct device_stream *const *streams,
                              const struct communicator_operation *operations, unsigned count)
{
    ncclResult_t result = communicator->nccl->ncclGroupStart();
    if (result != ncclSuccess)
        return result;
    for (unsigned i = 0; i < count && goes_on(result); i++) {
        cuda_device_enter(communicator->ranks[operations[i].device].device);
        result = queue_one(communicator, streams, &operations[i]);
    }
    return end_group(communicator->nccl, result);
}

static int enqueue(struct communicator *base, struct device_stream *const *streams,
                   const struct communicator_operation *operations, unsigned count, struct error *error)
{
    const struct cuda_communicator *communicator = (const struct cuda_communicator *)base;
    sigset_t before;
    hold_signals(&before);
    ncclResult_t result = queue_all(communicator, streams, operations, count);
    release_signals(&before);
    return check(communicator->nccl, result, "queueing work", error);
}

/* NCCL allows one thread at a time per communicator, and other threads on the communicators of
 * other GPUs; its groups belong to a thread. */
static struct communicator *part_of(struct communicator *base, unsigned device)
{
    return &((struct cuda_communicator *)base)->parts[device].base;
}

const struct communicator_backend cuda_communicators = {
    .prepare = prepare,
    .identify = identify,
    .start = start,
    .poll = poll_communicator,
    .enqueue = enqueue,
    .part = part_of,
    .abort = abort_communicator,
};
