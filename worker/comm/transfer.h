/* SPDX-License-Identifier: Apache-2.0
 *
 * Point to point: bytes from one rank of a group to another, beside the group's
 * collectives and over the same links.
 *
 * Messages between two ranks go in channels, numbers that both agree on. Those of
 * one channel arrive in the order in which they were sent; those of different
 * channels may be received in any order: what comes before it is asked for waits
 * in memory, up to TRANSFER_PARKED_MAX a peer, then in the sender's.
 *
 * Unlike collectives these may be started and waited for by several threads.
 * Failures, deadlines and stalls are the group's (collective.h).
 */
#ifndef COXSWAIN_COMM_TRANSFER_H
#define COXSWAIN_COMM_TRANSFER_H

#include "worker/comm/collective.h"

#define TRANSFER_CHANNELS_MAX 65536
#define TRANSFER_PARKED_MAX ((size_t)256 << 20)

struct outgoing_frame;

/* The caller's memory, as are the bytes: both stay in place until the wait. Zeroed before the first use; released after the
 * last, when it keeps room for frames. */
struct transfer {
    unsigned rank, channel;
    bool receives, pending;
    unsigned char *bytes;
    size_t length, arrived;
    unsigned frames_left; /* to come or to go */
    struct outgoing_frame *frames;
    unsigned frame_capacity;
    struct transfer *next;
};

void transfer_send_start(struct collective *group, unsigned rank, unsigned channel, const void *bytes, size_t length,
                         struct transfer *transfer);
/* Fine to call for one that is not under way. */
int transfer_wait(struct collective *group, struct transfer *transfer, struct error *error);
int transfer_receive(struct collective *group, unsigned rank, unsigned channel, void *bytes, size_t length,
                     struct error *error);
void transfer_release(struct transfer *transfer);

#endif
