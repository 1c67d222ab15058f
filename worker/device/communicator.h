/* SPDX-License-Identifier: Apache-2.0
 *
 * Connects devices of one or several processes as a group through NCCL, for strategies that reduce
 * gradients on GPUs. The group sums vectors, or sends them, from device memory to device memory
 * without the host. Each device is a rank of the group; the devices of a process have consecutive
 * ranks. For device types without such a library (CPUs), communicator_prepare fails.
 *
 * The operations run on the devices' streams, in the order of each stream. Placing them there may
 * take as long as a peer needs to answer, and no function here waits for a peer: the library places
 * them in the background. communicator_poll says whether that is done (not whether the operations
 * have run), or why it never will be. A lost peer may also cause no error at all: the caller needs
 * its own failure detection, and then calls communicator_abort.
 *
 *     communicator_prepare                      once for each device
 *     communicator_identify                     on rank 0; send the id to all by other means
 *     communicator_start, communicator_poll     until done
 *     communicator_enqueue, communicator_poll   until done; any number of times
 *     communicator_abort                        at any time, always at the end
 *
 * All calls must come from one thread. If each device has a thread of its own, each thread uses its
 * part (communicator_part) to enqueue and poll.
 */
#ifndef COXSWAIN_DEVICE_COMMUNICATOR_H
#define COXSWAIN_DEVICE_COMMUNICATOR_H

#include "worker/device/device.h"

struct communicator;

#define COMMUNICATOR_ID_BYTES 128
struct communicator_id {
    char bytes[COMMUNICATOR_ID_BYTES];
};

/* The values that the ranks must compare before they form a group. */
struct communicator_capabilities {
    int version;           /* version of the library, which must be the same on all ranks; 0: no library */
    uint64_t place;        /* identifies the device within its machine */
    bool may_share_device; /* the library allows several ranks on one device */
};

/* "2.30.7" */
#define COMMUNICATOR_VERSION_MAX 32
void communicator_version_text(int version, char text[COMMUNICATOR_VERSION_MAX]);

/* Sets environment variables so that the library sums by one algorithm, in the same order each
 * time, unless the environment names another, and obeys COXSWAIN_GPU_PEERS=0. The environment is
 * not thread-safe: call this from main before any thread starts. */
void communicator_set_environment(void);

/* Loads the library. ERROR_UNSUPPORTED: it is missing or too old; the message says what to
 * install. */
int communicator_prepare(struct device *device, struct communicator_capabilities *ret_capabilities,
                         struct error *error);

/* Creates the id of a new group. */
int communicator_identify(struct device *device, struct communicator_id *ret_id, struct error *error);
/* Starts to join a group of `size` ranks. This process's devices, all of one type, become the
 * ranks from `first` on. */
int communicator_start(struct device *const *devices, unsigned count, const struct communicator_id *id, unsigned first,
                       unsigned size, struct communicator **ret_communicator, struct error *error);

/* Checks what was started. Sets *ret_enqueued once all of it is on its streams, so that more
 * work may be queued after it. ERROR_UNAVAILABLE: a peer, or the connection to it, is lost;
 * ERROR_UNSUPPORTED: the library refuses the group; ERROR_DEVICE: the GPU failed. After an
 * error, only communicator_abort may be called. */
int communicator_poll(struct communicator *communicator, bool *ret_enqueued, struct error *error);

enum communicator_operation_kind {
    COMMUNICATOR_SUM,     /* sums all ranks' vectors in place; the library chooses the order of additions */
    COMMUNICATOR_SEND,    /* to `peer`; the n-th send of a batch matches the peer's n-th receive from here */
    COMMUNICATOR_RECEIVE, /* must have as many elements as are sent */
};
struct communicator_operation {
    enum communicator_operation_kind kind;
    unsigned device; /* index of a device given to communicator_start */
    unsigned peer;   /* another rank of the group */
    float *vector;   /* device memory; must stay until the stream has executed the operation */
    size_t elements; /* at least one */
};

/* Enqueues `count` operations, at least one, as a batch, each on the stream of its device, in
 * this order. Sends between devices of this process must be in the same batch as their receives;
 * with parts, each part enqueues its own end. */
int communicator_enqueue(struct communicator *communicator, struct device_stream *const *streams,
                         const struct communicator_operation *operations, unsigned count, struct error *error);

/* Returns the part of one device, for use by that device's own thread. In the part, the device has index 0, and other threads may use the
 * other parts at the same time. Call it once everything that was started before is enqueued. Only the whole communicator may be
 * aborted, when no part is inside a call. The part is owned by the communicator. */
struct communicator *communicator_part(struct communicator *communicator, unsigned device);

/* Aborts all work and frees the communicator; NULL is allowed. Streams continue; operations may
 * be half done. ERROR_TIMEOUT: the library has not returned by the deadline. Then the devices
 * must not be used, freed or waited for any more, and the process must end by _exit. */
int communicator_abort(struct communicator *communicator, int64_t deadline_ms, struct error *error);
/* Returns whether communicator_abort has timed out in this process. Then a thread is still
 * inside the library, and exit() could crash it. */
bool communicator_is_stuck(void);

#endif
