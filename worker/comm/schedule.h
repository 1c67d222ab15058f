/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans what one rank does in an all-reduce that runs in steps. In each step the rank sends, waits for what it must receive, and adds. A
 * schedule does not depend on the vector's length: its ranges count equal parts of the vector.
 *
 *   ring          a reduce-scatter and an all-gather around the ring (Patarasuk and Yuan 2009). Each part is added in the order of the
 *                 ring
 *   halving       recursive halving, then doubling (Thakur et al. 2005), neighbours first. For 2^k ranks with one contribution each, the
 *                 order of additions is the tree's
 *   doubling      exchanges whole vectors between pairs, log2 ranks times. The same holds for the order
 *   hierarchical  each node's contributions go to its first rank, which adds them as far up the tree as they reach; these ranks exchange
 *                 the sums part by part; the result goes back. The order is the tree's for any nodes
 *
 * Frames between two ranks are numbered from 0 in each operation, in the order of both their schedules.
 */
#ifndef COXSWAIN_COMM_SCHEDULE_H
#define COXSWAIN_COMM_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/comm/collective.h"

/* The place of a vector. A slot holds one range, that of the receive or addition that fills it first. */
enum place_kind { PLACE_CONTRIBUTION, PLACE_SLOT, PLACE_RESULT };
struct place {
    enum place_kind kind;
    unsigned index; /* of the contribution or slot */
};

/* Parts [first, end). */
struct part_range {
    unsigned first, end;
};

struct schedule_frame {
    unsigned step, rank;
    unsigned number; /* between these two ranks */
    struct place place;
    struct part_range range;
};

/* into = left + right. */
struct schedule_addition {
    unsigned step;
    struct place into, left, right;
    struct part_range range;
};

struct schedule {
    unsigned parts, steps;
    struct schedule_frame *sends, *receives; /* by step */
    struct schedule_addition *additions;     /* by step */
    unsigned send_count, receive_count, addition_count;
    struct part_range *slots;
    unsigned slot_count;
};

struct schedule *schedule_ring(unsigned rank, unsigned size);
/* For sizes that are powers of two. */
struct schedule *schedule_halving(unsigned rank, unsigned size);
struct schedule *schedule_doubling(unsigned rank, unsigned size);
/* Ranks r with equal nodes[r] are on the same node. */
struct schedule *schedule_hierarchical(unsigned rank, unsigned size, const unsigned *nodes,
                                       const struct collective_reduction *reduction);
void schedule_free(struct schedule *schedule);

/* Returns whether halving and doubling add in the order of `merges`. */
bool schedule_pairs_are_tree(unsigned size, const struct collective_reduction *reduction);

#endif
