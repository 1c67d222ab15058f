/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends bytes from one rank to another, over the links of a group (collective.h) and beside the group's collective
 * operations. A pipeline uses it for values and gradients between its stages, and strategies use it to copy training
 * state to a rank that lacks it.
 *
 * Each message has a channel, a number on which both ranks agree. Messages of one channel are received in the order in
 * which they were sent. Messages of different channels may be received in any order: up to TRANSFER_PARKED_MAX bytes
 * per peer that no receive has asked for yet are kept in the receiver's memory; further ones stay with the sender.
 *
 * Unlike collectives, transfers may be started and waited for by several threads. They fail, time out and report stalls like the group's
 * operations (collective.h).
 */
#ifndef COXSWAIN_COMM_TRANSFER_H
#define COXSWAIN_COMM_TRANSFER_H

#include "worker/comm/collective.h"

#define TRANSFER_PARKED_MAX ((size_t)256 << 20)

struct outgoing_frame;

/* Belongs to the caller, like the bytes; both must stay valid until the wait. Zero it before the first use, and release it after the
 * last. It keeps its memory for frames between uses. */
struct transfer {
    unsigned rank, channel;
    bool receives, pending;
    unsigned char *bytes;
    size_t length, arrived;
    unsigned frames_left; /* still to be received or sent */
    struct outgoing_frame *frames;
    unsigned frame_capacity;
    struct transfer *next;
};

void transfer_send_start(struct collective *group, unsigned rank, unsigned channel, const void *bytes, size_t length,
                         struct transfer *transfer);
/* Waits for the transfer. Does nothing if it is not under way. */
int transfer_wait(struct collective *group, struct transfer *transfer, struct error *error);
int transfer_receive(struct collective *group, unsigned rank, unsigned channel, void *bytes, size_t length,
                     struct error *error);
void transfer_release(struct transfer *transfer);

#endif
