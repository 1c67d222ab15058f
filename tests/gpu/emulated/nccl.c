/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of NCCL that the worker uses, for emulated GPUs: a library that is
 * found like the real one, and as strict as the manual:
 * - A communicator with an operation in progress takes no other.
 * - Two threads that use one communicator, from a group's first call to its end, abort the process. Groups of different threads with
 *   different communicators do not affect each other.
 * - Operations are queued on their stream some time after ncclGroupEnd has returned.
 * - Vectors and streams must be on the communicator's device.
 * - Several communicators of one thread are initialised in one group, and their messages to each other are queued in one group.
 * - No two communicators are on one GPU, unless NCCL_MULTI_RANK_GPU_ENABLE=1 and the version allow it.
 * - An operation with a peer that is gone waits until the communicator is aborted.
 *
 *   EMULATED_NCCL_VERSION    23007
 *   EMULATED_NCCL_SLOW_MS    milliseconds by which each operation of a stream is slower
 *   EMULATED_NCCL_TAIL_MS    milliseconds by which messages are sent later than their stream has passed them; an abort drops them
 *   EMULATED_NCCL_FAILS      init: no communicator can be initialised; second: a thread cannot initialise a second one in a group, and
 *                            the process reports at its end how many were not aborted; peers: the state of a communicator becomes
 *                            an error when a peer has gone, while otherwise its operations only wait
 *   EMULATED_NCCL_COUNTS     1: the process reports at its end how many vectors it has sent or received
 *   EMULATED_NCCL_ABORT      hangs: ncclCommAbort never returns; meets: it returns once all peers have called it or are gone, as
 *                            when threads of NCCL serve other processes of their machine
 */
#include "worker/device/cuda/nccl.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/gpu/emulated/nccl_tail.h"
#include "tests/gpu/emulated/stream.h"

#define HAND_OVER_US 200
#define PLACE_TEXT_MAX 32

struct ncclComm {
    int rank, ranks, device;
    struct ncclComm *next_to_form; /* in the open group */
    char root[WIRE_NAME_MAX];
    int sockets[WIRE_RANKS_MAX];
    _Atomic bool stop, gone;
    struct wire_tail *tail; /* NULL: streams send by themselves */
    pthread_t background;   /* runs the operation in progress */
    bool has_background;
    _Atomic unsigned long user; /* the thread that is in a call or has it in its open group; 0: none */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    ncclResult_t state; /* by the lock, like the next */
    unsigned on_stream;
};

struct sum {
    float *to, *others; /* all ranks' vectors, one after another */
    size_t count;
};

/* The operations that one ncclGroupEnd queues on a communicator's stream. */
struct group {
    struct group *next;
    struct ncclComm *comm;
    cudaStream_t stream;
    struct wire_message *messages, **end;
    struct sum sum; /* its `to` is NULL without a sum */
};

static __thread struct group *open_groups; /* one for each communicator */
static __thread struct ncclComm *to_form;
static __thread unsigned depth;
static __thread ncclResult_t group_error;
static _Atomic unsigned alive; /* number of communicators */
static _Atomic unsigned long passed;

static bool is_set(const char *name, const char *value)
{
    const char *text = getenv(name);
    return text && strcmp(text, value) == 0;
}

static void sleep_us(long us)
{
    nanosleep(&(struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000}, NULL);
}

/* Takes the communicator for the calling thread. Returns false if the thread has it already; aborts if another has. */
static bool take_hold(struct ncclComm *comm)
{
    unsigned long nobody = 0, self = (unsigned long)pthread_self();
    if (atomic_compare_exchange_strong(&comm->user, &nobody, self))
        return true;
    if (nobody == self)
        return false;
    fprintf(stderr, "emulated NCCL: two threads are in calls of rank %d at once\n", comm->rank);
    abort();
}

static void let_go(struct ncclComm *comm)
{
    atomic_store(&comm->user, 0);
}

static void set_state(struct ncclComm *comm, ncclResult_t state)
{
    pthread_mutex_lock(&comm->lock);
    comm->state = state;
    pthread_cond_broadcast(&comm->changed);
    pthread_mutex_unlock(&comm->lock);
}

static ncclResult_t state_of(struct ncclComm *comm)
{
    pthread_mutex_lock(&comm->lock);
    ncclResult_t state = comm->state;
    pthread_mutex_unlock(&comm->lock);
    if (state == ncclSuccess && atomic_load(&comm->gone) && is_set("EMULATED_NCCL_FAILS", "peers"))
        return ncclRemoteError;
    return state;
}

/* ---------------------------------------------------------------- what there is to know */

ncclResult_t ncclGetVersion(int *version)
{
    const char *text = getenv("EMULATED_NCCL_VERSION");
    *version = text ? (int)strtol(text, NULL, 10) : NCCL_VERSION(2, 30, 7);
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    static const char *const texts[] = {"no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error",
                                        "NCCL operation in progress"};
    return texts[result];
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return "";
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    bool taken = take_hold(comm);
    *state = state_of(comm);
    if (taken)
        let_go(comm);
    return ncclSuccess;
}

/* ---------------------------------------------------------------- life cycle */

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    memset(id->internal, 0, sizeof id->internal);
    return wire_open_root(id->internal) ? ncclSuccess : ncclSystemError;
}

static void run_in_background(struct ncclComm *comm, void *(*function)(void *), void *context)
{
    if (comm->has_background)
        pthread_join(comm->background, NULL);
    comm->has_background = pthread_create(&comm->background, NULL, function, context) == 0;
    if (!comm->has_background)
        abort();
}

static bool may_share_devices(void)
{
    int version = 0;
    (void)ncclGetVersion(&version);
    return version >= NCCL_VERSION_SHARED_GPU && is_set("NCCL_MULTI_RANK_GPU_ENABLE", "1");
}

/* Enables access to the memory of a GPU of this process, for the whole process; GPUs of other processes are reached otherwise. */
static void open_way(const struct ncclComm *comm, const char *place)
{
    char here[PLACE_TEXT_MAX];
    int count = 0;
    (void)cudaGetDeviceCount(&count);
    (void)cudaSetDevice(comm->device);
    for (int device = 0; device < count; device++)
        if (device != comm->device && cudaDeviceGetPCIBusId(here, PLACE_TEXT_MAX, device) == cudaSuccess &&
            strcmp(here, place) == 0)
            (void)cudaDeviceEnablePeerAccess(device, 0);
}

/* Exchanges the GPUs' bus ids among all ranks. */
static ncclResult_t compare_places(struct ncclComm *comm)
{
    char places[WIRE_RANKS_MAX][PLACE_TEXT_MAX] = {""};
    struct wire_message messages[2 * WIRE_RANKS_MAX], *last = NULL;
    int count = 0;
    if (cudaDeviceGetPCIBusId(places[comm->rank], PLACE_TEXT_MAX, comm->device) != cudaSuccess)
        return ncclUnhandledCudaError;
    for (int i = 0; i < 2 * comm->ranks; i++) {
        const int peer = i / 2;
        const bool receives = i % 2;
        if (peer == comm->rank)
            continue;
        messages[count] = (struct wire_message){.next = last,
                                                .peer = peer,
                                                .receives = receives,
                                                .bytes = places[receives ? peer : comm->rank],
                                                .length = PLACE_TEXT_MAX};
        last = &messages[count++];
    }
    if (!wire_exchange(comm->sockets, comm->ranks, last, &comm->stop, &comm->gone))
        return ncclRemoteError;
    for (int peer = 0; peer < comm->ranks; peer++)
        if (peer != comm->rank && strcmp(places[peer], places[comm->rank]) == 0 && !may_share_devices())
            return ncclInvalidUsage;
        else if (peer != comm->rank && !is_set("NCCL_P2P_DISABLE", "1"))
            open_way(comm, places[peer]);
    return ncclSuccess;
}

static void *form(void *context)
{
    struct ncclComm *comm = context;
    bool fails = is_set("EMULATED_NCCL_FAILS", "init");
    if (fails)
        fprintf(stderr, "emulated NCCL: rank %d cannot join\n", comm->rank);
    bool met = !fails && wire_meet(comm->root, comm->rank, comm->ranks, &comm->stop, comm->sockets);
    ncclResult_t result = met ? compare_places(comm) : fails ? ncclSystemError : ncclRemoteError;
    const char *late = getenv("EMULATED_NCCL_TAIL_MS");
    if (result == ncclSuccess && late)
        comm->tail = wire_tail_new(comm->sockets, comm->ranks, &comm->stop, &comm->gone, strtol(late, NULL, 10));
    set_state(comm, result);
    return NULL;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *ret_comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    if (config->size != sizeof *config || config->magic != NCCL_CONFIG_MAGIC || config->blocking != 0 || rank < 0 ||
        rank >= ranks || ranks > WIRE_RANKS_MAX)
        return ncclInvalidArgument;
    if (!getenv("NCCL_ALGO") || !getenv("NCCL_PROTO")) /* then NCCL would choose the order of sums */
        return ncclInvalidUsage;
    if (to_form && is_set("EMULATED_NCCL_FAILS", "second"))
        return group_error = ncclSystemError;
    struct ncclComm *comm = calloc(1, sizeof *comm);
    if (!comm)
        return ncclSystemError;
    atomic_fetch_add(&alive, 1);
    comm->rank = rank;
    comm->ranks = ranks;
    (void)cudaGetDevice(&comm->device);
    memcpy(comm->root, id.internal, sizeof comm->root);
    pthread_mutex_init(&comm->lock, NULL);
    pthread_cond_init(&comm->changed, NULL);
    comm->state = ncclInProgress;
    *ret_comm = comm;
    if (depth > 0) {
        comm->next_to_form = to_form;
        to_form = comm;
        return ncclSuccess;
    }
    run_in_background(comm, form, comm);
    return ncclInProgress;
}

static void await_end(int socket)
{
    char rest[4096];
    (void)shutdown(socket, SHUT_WR);
    while (recv(socket, rest, sizeof rest, 0) > 0)
        ;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    while (is_set("EMULATED_NCCL_ABORT", "hangs"))
        sleep_us(1000000);
    (void)take_hold(comm);
    atomic_store(&comm->stop, true);
    if (comm->has_background)
        pthread_join(comm->background, NULL);
    pthread_mutex_lock(&comm->lock);
    while (comm->on_stream > 0)
        pthread_cond_wait(&comm->changed, &comm->lock);
    pthread_mutex_unlock(&comm->lock);
    wire_tail_free(comm->tail);
    for (int peer = 0; is_set("EMULATED_NCCL_ABORT", "meets") && peer < comm->ranks; peer++)
        if (comm->sockets[peer] >= 0 && peer != comm->rank)
            await_end(comm->sockets[peer]);
    for (int peer = 0; peer < comm->ranks; peer++)
        if (comm->sockets[peer] >= 0 && peer != comm->rank)
            close(comm->sockets[peer]);
    pthread_cond_destroy(&comm->changed);
    pthread_mutex_destroy(&comm->lock);
    free(comm);
    atomic_fetch_sub(&alive, 1);
    return ncclSuccess;
}

__attribute__((destructor)) static void tell_left_behind(void)
{
    if (is_set("EMULATED_NCCL_FAILS", "second"))
        fprintf(stderr, "communicators left behind: %u\n", atomic_load(&alive));
    if (is_set("EMULATED_NCCL_COUNTS", "1"))
        fprintf(stderr, "vectors by NCCL: %lu\n", atomic_load(&passed));
}

/* ---------------------------------------------------------------- on the stream */

/* Sums in the order of a ring with a different beginning in each part of the vector, unlike any tree. */
static void add_up(const struct sum *sum, int ranks)
{
    for (size_t i = 0; i < sum->count; i++) {
        int first = (int)(i * (size_t)ranks / sum->count) + 1;
        float total = sum->others[(size_t)(first % ranks) * sum->count + i];
        for (int next = first + 1; next < first + ranks; next++)
            total += sum->others[(size_t)(next % ranks) * sum->count + i];
        sum->to[i] = total;
    }
}

static void free_group(struct group *group)
{
    while (group->messages) {
        struct wire_message *next = group->messages->next;
        free(group->messages);
        group->messages = next;
    }
    free(group->sum.others);
    free(group);
}

static void run_group(void *context)
{
    struct group *group = context;
    struct ncclComm *comm = group->comm;
    const char *slow = getenv("EMULATED_NCCL_SLOW_MS");
    if (slow && !atomic_load(&comm->stop))
        sleep_us(strtol(slow, NULL, 10) * 1000);
    if (group->sum.to)
        memcpy(group->sum.others + (size_t)comm->rank * group->sum.count, group->sum.to,
               group->sum.count * sizeof(float));
    if (comm->tail)
        wire_tail_take(comm->tail, &group->messages);
    if (wire_exchange(comm->sockets, comm->ranks, group->messages, &comm->stop, &comm->gone) && group->sum.to)
        add_up(&group->sum, comm->ranks);
    free_group(group);
    pthread_mutex_lock(&comm->lock);
    comm->on_stream--;
    pthread_cond_broadcast(&comm->changed);
    pthread_mutex_unlock(&comm->lock);
}

static void *hand_over(void *context)
{
    struct group *group = context;
    struct ncclComm *comm = group->comm;
    sleep_us(HAND_OVER_US);
    pthread_mutex_lock(&comm->lock);
    comm->on_stream++;
    pthread_mutex_unlock(&comm->lock);
    emulated_queue_function(group->stream, run_group, group);
    set_state(comm, ncclSuccess);
    return NULL;
}

/* ---------------------------------------------------------------- groups */

ncclResult_t ncclGroupStart(void)
{
    if (depth++ == 0)
        group_error = ncclSuccess;
    return ncclSuccess;
}

/* Returns whether messages to another communicator of this thread in the group are received in the same group: NCCL connects the two
 * before it queues either. */
static bool is_answered(const struct group *group, const struct group *groups)
{
    for (const struct group *peer = groups; peer; peer = peer->next)
        for (const struct wire_message *message = group->messages; message; message = message->next) {
            unsigned sent = 0, received = 0;
            if (strcmp(peer->comm->root, group->comm->root) != 0 || message->receives ||
                message->peer != peer->comm->rank)
                continue;
            for (const struct wire_message *one = group->messages; one; one = one->next)
                sent += one->peer == message->peer && !one->receives;
            for (const struct wire_message *one = peer->messages; one; one = one->next)
                received += one->peer == group->comm->rank && one->receives;
            if (sent != received)
                return false;
        }
    return true;
}

static ncclResult_t give_up(struct group *groups, ncclResult_t result)
{
    while (groups) {
        struct group *next = groups->next;
        let_go(groups->comm);
        free_group(groups);
        groups = next;
    }
    return result;
}

ncclResult_t ncclGroupEnd(void)
{
    if (depth == 0)
        return ncclInvalidUsage;
    if (--depth > 0)
        return ncclSuccess;
    struct group *groups = open_groups;
    struct ncclComm *comms = to_form;
    open_groups = NULL;
    to_form = NULL;
    if (group_error != ncclSuccess)
        return give_up(groups, group_error);
    for (const struct group *group = groups; group; group = group->next)
        if (!is_answered(group, groups))
            return give_up(groups, ncclInvalidUsage);
    if (!groups && !comms)
        return ncclSuccess;
    for (; comms; comms = comms->next_to_form)
        run_in_background(comms, form, comms);
    while (groups) {
        struct group *next = groups->next; /* now, because the background thread frees the group */
        struct ncclComm *comm = groups->comm;
        set_state(comm, ncclInProgress);
        run_in_background(comm, hand_over, groups);
        let_go(comm);
        groups = next;
    }
    return ncclInProgress;
}

static bool is_on_device(const void *memory, int device)
{
    struct cudaPointerAttributes attributes;
    return cudaPointerGetAttributes(&attributes, memory) == cudaSuccess && attributes.type == cudaMemoryTypeDevice &&
           attributes.device == device;
}

/* Returns the communicator's part of the open group; NULL if no group is open. */
static struct group *part_of(struct ncclComm *comm, cudaStream_t stream)
{
    struct group *group = open_groups;
    while (group && group->comm != comm)
        group = group->next;
    if (depth == 0 || group)
        return group;
    group = calloc(1, sizeof *group);
    if (!group)
        abort();
    (void)take_hold(comm);
    *group = (struct group){.next = open_groups, .comm = comm, .stream = stream};
    group->end = &group->messages;
    return open_groups = group;
}

/* The same, but NULL if the operation cannot be part of the group. */
static struct group *group_for(struct ncclComm *comm, cudaStream_t stream, const void *memory, ncclDataType_t type)
{
    struct group *group = part_of(comm, stream);
    if (group && group->stream == stream && emulated_stream_device(stream) == comm->device &&
        state_of(comm) == ncclSuccess && type == ncclFloat32 && is_on_device(memory, comm->device))
        return group;
    group_error = ncclInvalidUsage;
    return NULL;
}

static void add_message(struct group *group, int peer, bool receives, void *bytes, size_t length)
{
    struct wire_message *message = calloc(1, sizeof *message);
    if (!message)
        abort();
    message->peer = peer;
    message->receives = receives;
    message->bytes = bytes;
    message->length = length;
    *group->end = message;
    group->end = &message->next;
}

static ncclResult_t pass(int peer, bool receives, void *memory, size_t count, ncclDataType_t type, ncclComm_t comm,
                         cudaStream_t stream)
{
    struct group *group = group_for(comm, stream, memory, type);
    if (!group || peer < 0 || peer >= comm->ranks || peer == comm->rank)
        return group_error = ncclInvalidUsage;
    add_message(group, peer, receives, memory, count * sizeof(float));
    atomic_fetch_add(&passed, 1);
    return ncclSuccess;
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    return pass(peer, false, (void *)from, count, type, comm, stream);
}

ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    return pass(peer, true, to, count, type, comm, stream);
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t comm, cudaStream_t stream)
{
    struct group *group = group_for(comm, stream, to, type);
    if (!group || from != to || operation != ncclSum || group->messages)
        return group_error = ncclInvalidUsage;
    float *others = calloc((size_t)comm->ranks * count, sizeof *others);
    if (!others)
        return group_error = ncclSystemError;
    group->sum = (struct sum){to, others, count};
    for (int peer = 0; peer < comm->ranks; peer++) {
        if (peer == comm->rank)
            continue;
        add_message(group, peer, false, to, count * sizeof(float));
        add_message(group, peer, true, others + (size_t)peer * count, count * sizeof(float));
    }
    return ncclSuccess;
}
