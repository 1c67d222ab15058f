/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans what one rank does in an all-reduce (the sum of all ranks' vectors, for all ranks) that
 * runs in steps. In each step the rank sends, waits for what it must receive, and adds. A schedule
 * does not depend on the vector's length: its ranges count equal parts of the vector.
 *
 * "The tree" is the binary tree of collective_reduction.merges (strategy/reduction_tree.h): the
 * order in which one device would add all contributions. A sum in the tree's order has the same
 * bits for any number of ranks.
 *
 *   ring          a reduce-scatter and an all-gather around the ring (Patarasuk and Yuan 2009). Each part is added in the order of the
 *                 ring, not of the tree, so the bits depend on the number of ranks
 *   halving       recursive halving, then doubling (Thakur et al. 2005): ranks at distance 1 exchange first, then those at distance 2,
 *                 4, …. If the number of ranks is a power of two and each has one contribution, the order of additions is the tree's
 *   doubling      exchanges whole vectors between the same pairs, log2(ranks) times; the order of additions is that of halving
 *   hierarchical  each node's ranks send their contributions to the node's first rank, which does all additions of the tree whose
 *                 operands are complete on this node; these first ranks exchange the sums part by part, and send the result to their
 *                 node's ranks. The order of additions is the tree's, whichever ranks share a node
 *
 * Frames between two ranks are numbered from 0 in each operation; both ranks' schedules list them
 * in the same order.
 */
#ifndef COXSWAIN_COMM_SCHEDULE_H
#define COXSWAIN_COMM_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/comm/collective.h"

/* The place of a vector. A buffer holds one range, that of the receive or addition that fills it first. */
enum place_kind { PLACE_CONTRIBUTION, PLACE_BUFFER, PLACE_RESULT };
struct place {
    enum place_kind kind;
    unsigned index; /* of the contribution or buffer */
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
    struct part_range *buffers;
    unsigned buffer_count;
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
