/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the transfers (messages from one rank to another, transfer.h) of one lane, which share its link with the group's
 * collective operations. A lane is a rank's link to one peer and the frames that wait to be sent on it
 * (collective_parts.h). transfer.c implements the functions; collective*.c call them with the group's lock held.
 */
#ifndef COXSWAIN_COMM_LANE_TRANSFERS_H
#define COXSWAIN_COMM_LANE_TRANSFERS_H

#include "worker/comm/frame.h"
#include "worker/comm/transfer.h"

struct lane;

/* A frame that was received before its message was asked for. */
struct parked_frame {
    struct parked_frame *next;
    unsigned channel;
    size_t length;
    unsigned char bytes[];
};

/* The number of frames of one channel so far. */
struct transfer_channel {
    unsigned number;
    uint64_t sent, received;
};

/* The transfers of one lane. */
struct lane_transfers {
    struct transfer_channel *channels;
    unsigned channel_count;
    struct transfer *under_way, **under_way_end; /* until transfers_retire, in the order of their starts */
    struct parked_frame *parked, **parked_end;
    size_t parked_bytes;
};

void lane_transfers_init(struct lane_transfers *transfers);
void lane_transfers_release(struct lane_transfers *transfers);
/* Sets *ret_bytes to where the payload of a FRAME_MESSAGE is to be read to: the memory of the receive that waits for it,
 * or a new parked frame. Returns 0 if no receive waits and the limit of parked bytes is reached, otherwise 1. ERROR_CORRUPT
 * if the frame's sequence number or length is not the next one expected. */
int lane_transfers_place(struct lane_transfers *transfers, unsigned rank, const struct frame_header *header,
                         unsigned char **ret_bytes, struct error *error);
/* Returns whether a receive waits for the frame's payload, or it can be parked. */
bool lane_transfers_wants(const struct lane_transfers *transfers, const struct frame_header *header);
/* Counts the frame as received, once its whole payload is at `bytes`, which lane_transfers_place returned. */
void lane_transfers_finish(struct lane_transfers *transfers, const struct frame_header *header, unsigned char *bytes);
/* Returns whether a receive from the peer is incomplete. */
bool lane_transfers_awaits(const struct lane_transfers *transfers);
/* Removes completed transfers and wakes the threads that wait for them. */
void transfers_retire(struct collective *group);

#endif
