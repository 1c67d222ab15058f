/* SPDX-License-Identifier: Apache-2.0
 *
 * One operation of a group: what it expects from whom, where received bytes go,
 * and what it sends. An all-reduce of a long vector is cut into many of these
 * (OPERATION_BYTES each), so that receiving, combining and handing on overlap.
 * Known only to collective.c and its sending side; no I/O here.
 */
#ifndef COXSWAIN_COMM_OPERATION_H
#define COXSWAIN_COMM_OPERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/comm/collective.h"
#include "worker/comm/frame.h"
#include "worker/comm/schedule.h"

/* The vector of one operation at most; contributions travel in frames of this size at most. */
#define OPERATION_BYTES FRAME_PAYLOAD_MAX
#define OPERATION_ELEMENTS (OPERATION_BYTES / sizeof(float))
/* The same of all-reduces between two ranks that share memory: what comes is added and given back while it is in a near cache. */
#define OPERATION_BYTES_OF_TWO ((size_t)128 << 10)
/* Vectors up to this are exchanged whole. */
#define OPERATION_DIRECT_BYTES ((size_t)16 << 10)
#define OPERATION_PARTS_MAX 32
/* From so many ranks on, pairs of ranks halve vectors up to this, and exchange shorter ones whole, where that is the tree. */
#define OPERATION_PAIRS_RANKS_MIN 4
#define OPERATION_HALVING_BYTES ((size_t)256 << 10)
/* From so many on they halve vectors of any length: owners would send each a message for every operation. */
#define OPERATION_HALVING_RANKS_MIN 16

enum operation_kind {
    OPERATION_DIRECT,
    OPERATION_OWNED,
    OPERATION_STEPPED,
    OPERATION_SCATTER, /* the two halves of OWNED, where the shards say who owns what; within one round of stripes */
    OPERATION_GATHER,
    OPERATION_BROADCAST
};

struct operation;

/* A frame on its way out; `next` links it into its link's queue. */
struct outgoing_frame {
    struct outgoing_frame *next;
    unsigned *unsent; /* counted down when it is on the wire */
    unsigned char header[FRAME_HEADER_BYTES];
    const void *payload;
    size_t length; /* of the payload */
    size_t sent;   /* of header and payload together */
    bool urgent;   /* others go on with it, and it is still in a near cache: before contributions to later operations */
};

/* What all operations of a group share. */
struct operation_setting {
    unsigned rank, size;
    struct generation generation;
    struct collective_reduction reduction;
    unsigned
        first_input[CREW_SIZE_MAX + 1]; /* rank r's contributions are inputs [first_input[r], first_input[r + 1]) */
    bool check_frames;
    enum collective_algorithm algorithm;
    /* NULL where this group cannot. */
    struct schedule *doubling, *halving, *chosen; /* chosen: of RING, REDUCE_TO_ONE, HIERARCHICAL */
};

struct operation {
    bool active;
    enum operation_kind kind;
    uint64_t sequence;
    collective_ticket ticket; /* the request it is a part of */
    const struct operation_setting *setting;

    size_t elements;                                 /* all but broadcasts */
    struct collective_shards shards;                 /* SCATTER and GATHER */
    const unsigned *givers;                          /* GATHER: who sends what each rank owns; NULL: the owner */
    const float *contributions[OPERATION_PARTS_MAX]; /* own ones, at this operation's place in the vector */
    float *result;
    float *staging; /* received contributions; grows, lent between uses to others */
    size_t staging_elements;

    const struct schedule *schedule; /* of a stepped all-reduce */
    unsigned step;                   /* `schedule->steps`: over */
    unsigned sends, additions;       /* of the schedule, done */
    bool *arrived;                   /* by receive */
    size_t *slot_offsets;            /* into staging */

    unsigned char *bytes; /* broadcast */
    size_t length;

    unsigned awaiting[CREW_SIZE_MAX]; /* frames still to come from each rank */
    unsigned awaiting_total;
    unsigned contributions_left; /* of those, contributions */
    unsigned unsent;             /* frames still to go out */
    bool combined;

    struct outgoing_frame *frames;
    unsigned frame_count, frame_capacity;
};

/* Where an operation's own frames go. */
typedef void operation_send(void *context, unsigned rank, struct outgoing_frame *frame);

/* Prepares an inactive operation and hands its first frames to `send`. */
void operation_begin_all_reduce(struct operation *operation, const struct operation_setting *setting, uint64_t sequence,
                                const float *const *contributions, float *result, size_t elements, operation_send *send,
                                void *context);
void operation_begin_reduce_scatter(struct operation *operation, const struct operation_setting *setting,
                                    uint64_t sequence, const float *const *contributions, float *result,
                                    size_t elements, const struct collective_shards *shards, operation_send *send,
                                    void *context);
void operation_begin_all_gather(struct operation *operation, const struct operation_setting *setting, uint64_t sequence,
                                const unsigned *givers, float *vector, size_t elements,
                                const struct collective_shards *shards, operation_send *send, void *context);
void operation_begin_broadcast(struct operation *operation, const struct operation_setting *setting, uint64_t sequence,
                               unsigned root, const bool *receives, void *bytes, size_t length, operation_send *send,
                               void *context);

/* Where the payload of a frame from `rank` belongs; ERROR_CORRUPT when this operation expects no such frame. */
int operation_destination(struct operation *operation, unsigned rank, const struct frame_header *header,
                          void **ret_bytes, struct error *error);
/* The whole payload is there. */
void operation_received(struct operation *operation, unsigned rank, const struct frame_header *header,
                        operation_send *send, void *context);
/* Goes on where it waited for its own frames to leave; fine to call at any time. */
void operation_advance(struct operation *operation, operation_send *send, void *context);
bool operation_is_done(const struct operation *operation);
/* Whether it needs staging memory from the first contribution that comes until all are combined, not from its beginning to its end. */
bool operation_stages_late(const struct operation *operation);
void operation_release(struct operation *operation);

#endif
