/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices of one process or several as one group, whose vectors go from the
 * memory of one device to that of another without the host, in the order of
 * streams. Each device is a rank of the group, those of a process side by side.
 * GPUs have it by NCCL; a device that has none says so in communicator_prepare.
 *
 * Nothing here waits for a peer: whatever is started goes on in the background
 * until communicator_poll says that it has been handed over, or why it never
 * will be. A peer that is gone may as well show as nothing at all: whoever waits
 * needs a verdict of its own, and then communicator_abort.
 *
 *     communicator_prepare                      once for each device
 *     communicator_identify in rank 0, the id to everybody by other means
 *     communicator_start, communicator_poll     until handed over
 *     communicator_enqueue, communicator_poll   until handed over; any number of times
 *     communicator_abort                        at any time, always at the end
 *
 * All calls belong to one thread; where each device has a thread of its own, what
 * these start and poll are parts (communicator_part).
 */
#ifndef COXSWAIN_DEVICE_COMMUNICATOR_H
#define COXSWAIN_DEVICE_COMMUNICATOR_H

#include "worker/device/device.h"

struct communicator;

#define COMMUNICATOR_ID_BYTES 128
struct communicator_id {
    char bytes[COMMUNICATOR_ID_BYTES];
};

/* What ranks must know of each other before they form a group. */
struct communicator_standing {
    int version;           /* of the library, which must be that of all others; 0: there is none */
    uint64_t place;        /* which of its machine's devices it is */
    bool may_share_device; /* the library lets several ranks be on one device */
};

/* "2.30.7" */
#define COMMUNICATOR_VERSION_MAX 32
void communicator_version_text(int version, char text[COMMUNICATOR_VERSION_MAX]);

/* Has the library's own sums follow one algorithm, whose order is the same each time, unless the environment names another, and
 * COXSWAIN_GPU_PEERS=0 hold for it as well. That is where the library looks for it, and threads read the environment: for main,
 * before there are any. */
void communicator_set_environment(void);

/* Finds the library. ERROR_UNSUPPORTED: there is none, or too old a one; what to install. */
int communicator_prepare(struct device *device, struct communicator_standing *ret_standing, struct error *error);

/* A name for a group to be. */
int communicator_identify(struct device *device, struct communicator_id *ret_id, struct error *error);
/* This process's devices, all of one kind, as the ranks from `first` on of `size`. */
int communicator_start(struct device *const *devices, unsigned count, const struct communicator_id *id, unsigned first,
                       unsigned size, struct communicator **ret_communicator, struct error *error);

/* *ret_handed_over: what was started is on its streams, and more may be put behind it there. ERROR_UNAVAILABLE: a peer or the way to
 * it is lost; ERROR_UNSUPPORTED: the library refuses the group; ERROR_DEVICE. Only abort is left then. */
int communicator_poll(struct communicator *communicator, bool *ret_handed_over, struct error *error);

enum communicator_operation_kind {
    COMMUNICATOR_SUM,     /* of all ranks' vectors, in place, in whatever order the library adds */
    COMMUNICATOR_SEND,    /* to `peer`, where the n-th of a batch meets the n-th receive from here */
    COMMUNICATOR_RECEIVE, /* of as many elements as are sent */
};
struct communicator_operation {
    enum communicator_operation_kind kind;
    unsigned device; /* of this process, as given to communicator_start */
    unsigned peer;   /* a rank of the group, not the device itself */
    float *vector;   /* the device's memory, in place until its stream has passed */
    size_t elements; /* at least one */
};

/* All of them at once, each on the stream of its device, in the order of these; at least one. What devices of this process send
 * each other belongs to one call of one thread; of parts each calls for its own end. */
int communicator_enqueue(struct communicator *communicator, struct device_stream *const *streams,
                         const struct communicator_operation *operations, unsigned count, struct error *error);

/* One of its devices, for a thread of the device's own: where it is device 0 of a communicator that is polled and given work while other
 * threads do so with the others. Not before all is handed over that was started before; and then the whole is aborted alone, once
 * no part is in a call. Borrowed. */
struct communicator *communicator_part(struct communicator *communicator, unsigned device);

/* Ends whatever is under way and frees; fine for NULL. Streams go on, behind operations that are half done. ERROR_TIMEOUT: the
 * library has not come back by then. The devices are then out of bounds: nothing of them is freed or waited for any more, and the
 * process can only end, by _exit. */
int communicator_abort(struct communicator *communicator, int64_t deadline_ms, struct error *error);
/* Whether that has happened to any: a thread of ours is still in a call of the library's, for which exit() would take it down. */
bool communicator_is_stuck(void);

#endif
