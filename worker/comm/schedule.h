/* SPDX-License-Identifier: Apache-2.0
 *
 * What one rank does in an all-reduce that goes in steps: in each it sends,
 * waits for what it is to receive, and adds. A schedule knows nothing of sizes;
 * ranges are counted in equal parts of whatever vector it is used for.
 *
 *   ring          a reduce-scatter and an all-gather round the ring (Patarasuk and Yuan
 *                 2009). Each part is added in the order of the ring
 *   halving       recursive halving, then doubling (Thakur et al. 2005), neighbours first:
 *                 for 2^k ranks of one contribution each the order is the tree's
 *   doubling      whole vectors between pairs, log2 ranks times; likewise
 *   hierarchical  within each node to its first rank, which goes as far up the tree as
 *                 the node's contributions reach; between those ranks part by part; and
 *                 back. The order is the tree's for any nodes
 *
 * Frames between two ranks are numbered from 0 in each operation, in the order of
 * both their schedules.
 */
#ifndef COXSWAIN_COMM_SCHEDULE_H
#define COXSWAIN_COMM_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/comm/collective.h"

/* Where a vector lies. A slot holds one range, that of the receive or addition that fills it first. */
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
/* Sizes that are powers of two. */
struct schedule *schedule_halving(unsigned rank, unsigned size);
struct schedule *schedule_doubling(unsigned rank, unsigned size);
/* `nodes[r]`: ranks with equal numbers are near each other. */
struct schedule *schedule_hierarchical(unsigned rank, unsigned size, const unsigned *nodes,
                                       const struct collective_reduction *reduction);
void schedule_free(struct schedule *schedule);

/* Whether halving and doubling add in the order of `merges`. */
bool schedule_pairs_are_tree(unsigned size, const struct collective_reduction *reduction);

#endif
