/* SPDX-License-Identifier: Apache-2.0
 *
 * Transfers as the group's lanes see them. Used with the group's lock held, by
 * the files that make a group alone.
 */
#ifndef COXSWAIN_COMM_TRANSFER_PARTS_H
#define COXSWAIN_COMM_TRANSFER_PARTS_H

#include "worker/comm/frame.h"
#include "worker/comm/transfer.h"

struct lane;

/* A frame that came before it was asked for. */
struct parked_frame {
    struct parked_frame *next;
    unsigned channel;
    size_t length;
    unsigned char bytes[];
};

/* Frames of one channel so far, each way. */
struct transfer_channel {
    unsigned number;
    uint64_t sent, received;
};

/* A lane's share of it. */
struct lane_transfers {
    struct transfer_channel *channels;
    unsigned channel_count;
    struct transfer *under_way, **under_way_end; /* in the order in which they were started */
    struct parked_frame *parked, **parked_end;
    size_t parked_bytes;
};

void lane_transfers_init(struct lane_transfers *transfers);
void lane_transfers_release(struct lane_transfers *transfers);
/* Where the payload of a FRAME_MESSAGE goes. 1: found; 0: there is no room yet; -1: it makes no sense. */
int lane_transfers_place(struct lane_transfers *transfers, unsigned rank, const struct frame_header *header,
                         unsigned char **ret_bytes, struct error *error);
bool lane_transfers_wants(const struct lane_transfers *transfers, const struct frame_header *header);
/* The whole payload is there, where lane_transfers_place has said. */
void lane_transfers_finish(struct lane_transfers *transfers, const struct frame_header *header, unsigned char *bytes);
/* Whether anything is still wanted of the peer. */
bool lane_transfers_awaits(const struct lane_transfers *transfers);
/* Tells the waiting threads what is done. */
void transfers_retire(struct collective *group);

#endif
