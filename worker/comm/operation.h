/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the state of one operation of a group (collective.h): which frames it expects from each rank, where received
 * bytes go, and which frames it sends. An all-reduce of a long vector is cut into many operations of OPERATION_BYTES,
 * so that receiving, combining and sending overlap.
 *
 * Operations do no I/O: frames to be sent are passed to `send`, and received frames are reported with
 * operation_received. All calls are made with the group's lock held. Only the files that implement collectives include
 * this header.
 */
#ifndef COXSWAIN_COMM_OPERATION_H
#define COXSWAIN_COMM_OPERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/comm/collective.h"
#include "worker/comm/frame.h"
#include "worker/comm/schedule.h"

/* Longest vector of one operation, and so longest frame. */
#define OPERATION_BYTES FRAME_PAYLOAD_MAX
#define OPERATION_ELEMENTS (OPERATION_BYTES / sizeof(float))
/* Longest vector of one operation in an all-reduce between two ranks that share memory. It is shorter, so that contributions are added and
 * sent back while they are in the processor's cache. */
#define OPERATION_BYTES_OF_TWO ((size_t)128 << 10)
/* Longest vector that is exchanged whole. */
#define OPERATION_DIRECT_BYTES ((size_t)16 << 10)
/* Most contributions of a rank. */
#define OPERATION_PARTS_MAX 32
/* With this many ranks or more, vectors up to OPERATION_DIRECT_BYTES use recursive doubling, and longer ones, up to OPERATION_HALVING_BYTES,
 * recursive halving; but only if exchanges between pairs of ranks add in the order of the tree (schedule_pairs_are_tree). */
#define OPERATION_PAIRS_RANKS_MIN 4
#define OPERATION_HALVING_BYTES ((size_t)256 << 10)
/* With this many ranks or more, recursive halving is used for vectors of any length, because owners would have to send a message to every
 * rank for every operation. */
#define OPERATION_HALVING_RANKS_MIN 16

enum operation_kind {
    OPERATION_DIRECT,
    OPERATION_OWNED,
    OPERATION_STEPPED,
    OPERATION_SCATTER, /* SCATTER and GATHER: the two halves of OWNED, with owners by shards; each within one round of stripes */
    OPERATION_GATHER,
    OPERATION_BROADCAST
};

struct operation;

/* A frame in a link's send queue. */
struct outgoing_frame {
    struct outgoing_frame *next;
    unsigned *unsent; /* decremented once the frame is sent */
    unsigned char header[FRAME_HEADER_BYTES];
    const void *payload;
    size_t length; /* of the payload */
    size_t sent;   /* bytes of header and payload together */
    bool
        urgent; /* sent before frames that are not urgent: a result, for which other ranks wait and which is still in the cache */
};

/* Settings that all operations of a group share. */
struct operation_setting {
    unsigned rank, size;
    struct generation generation;
    struct collective_reduction reduction;
    unsigned
        first_input[CREW_SIZE_MAX + 1]; /* rank r's contributions are inputs [first_input[r], first_input[r + 1]) */
    bool check_frames;
    enum collective_algorithm algorithm;
    /* NULL: not available in this group. */
    struct schedule *doubling, *halving, *chosen; /* chosen: for RING, REDUCE_TO_ONE or HIERARCHICAL */
};

struct operation {
    bool active;
    enum operation_kind kind;
    uint64_t sequence;
    collective_ticket ticket; /* of the request that it is a part of */
    const struct operation_setting *setting;

    size_t elements;                                 /* except in broadcasts */
    struct collective_shards shards;                 /* SCATTER and GATHER */
    const unsigned *sources;                         /* GATHER: the sender of each rank's part; NULL: its owner */
    const float *contributions[OPERATION_PARTS_MAX]; /* of this rank; point to this operation's part of the vectors */
    float *result;
    float *staging; /* received contributions; operations share this memory and pass it on (collective_lend_staging) */
    size_t staging_elements;

    const struct schedule *schedule; /* of a stepped all-reduce */
    unsigned step;                   /* `schedule->steps`: all are done */
    unsigned sends, additions;       /* number done */
    bool *arrived;                   /* for each receive of the schedule */
    size_t *buffer_offsets;          /* into staging */

    unsigned char *bytes; /* of a broadcast */
    size_t length;

    unsigned awaiting[CREW_SIZE_MAX]; /* frames still to be received, by rank */
    unsigned awaiting_total;
    unsigned contributions_left; /* the number of these that are contributions */
    unsigned unsent;             /* frames still to be sent */
    bool combined;

    struct outgoing_frame *frames;
    unsigned frame_count, frame_capacity;
};

/* Queues an operation's frame to `rank`. */
typedef void operation_send(void *context, unsigned rank, struct outgoing_frame *frame);

/* Begin an inactive operation and pass its first frames to `send`. */
void operation_begin_all_reduce(struct operation *operation, const struct operation_setting *setting, uint64_t sequence,
                                const float *const *contributions, float *result, size_t elements, operation_send *send,
                                void *context);
void operation_begin_reduce_scatter(struct operation *operation, const struct operation_setting *setting,
                                    uint64_t sequence, const float *const *contributions, float *result,
                                    size_t elements, const struct collective_shards *shards, operation_send *send,
                                    void *context);
void operation_begin_all_gather(struct operation *operation, const struct operation_setting *setting, uint64_t sequence,
                                const unsigned *sources, float *vector, size_t elements,
                                const struct collective_shards *shards, operation_send *send, void *context);
void operation_begin_broadcast(struct operation *operation, const struct operation_setting *setting, uint64_t sequence,
                               unsigned root, const bool *receives, void *bytes, size_t length, operation_send *send,
                               void *context);

/* Returns where the payload of a frame from `rank` belongs. ERROR_CORRUPT if this operation expects no such frame. */
int operation_destination(struct operation *operation, unsigned rank, const struct frame_header *header,
                          void **ret_bytes, struct error *error);
/* Tells the operation that a frame's whole payload is now at operation_destination. The operation may queue further frames with `send`. */
void operation_received(struct operation *operation, unsigned rank, const struct frame_header *header,
                        operation_send *send, void *context);
/* Continues an operation that waited until its own frames were sent. May be called at any time. */
void operation_advance(struct operation *operation, operation_send *send, void *context);
bool operation_is_done(const struct operation *operation);
/* Returns whether the operation needs staging memory only from its first received contribution until all are combined. */
bool operation_stages_late(const struct operation *operation);
void operation_release(struct operation *operation);

#endif
