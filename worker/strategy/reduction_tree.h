/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines the order in which gradients are summed: a fixed balanced binary tree over L leaves, which are the logical
 * shards, the fixed parts into which each batch is cut. Strategies that promise the bits of one device add in this
 * order, and so do parameter servers in mode Synchronous.
 *
 * A node over n leaves splits them into the first ceil(n/2) and the rest; its value is left + right. Because the tree
 * depends only on L, the bits of the sum do not depend on how many ranks share the leaves.
 *
 * Rank r of W owns leaves [rL/W, (r+1)L/W). It sums by itself the maximal subtrees that have only
 * leaves it owns (its cover). The rest is done by the all-reduce (collective.h), which cuts the
 * vector into chunks: the rank that owns a chunk receives this chunk of all ranks' covers and adds
 * them up to the root.
 */
#ifndef COXSWAIN_STRATEGY_REDUCTION_TREE_H
#define COXSWAIN_STRATEGY_REDUCTION_TREE_H

#include <stddef.h>

#include "common/error.h"
#include "worker/comm/collective.h"

#define REDUCTION_LEAVES_MAX 4096
/* Most maximal subtrees in the cover of a range of leaves: two for each level. */
#define REDUCTION_COVER_MAX 24
/* Most partial sums that summing a subtree needs at a time. */
#define REDUCTION_DEPTH_MAX 14

struct reduction_subtree {
    unsigned first, count;
};

/* Sets [*ret_first, *ret_end) to the leaves that `rank` of `ranks` owns. */
void reduction_rank_leaves(unsigned leaves, unsigned rank, unsigned ranks, unsigned *ret_first, unsigned *ret_end);

/* Finds the maximal subtrees of the tree over `leaves` within [first, end), from left to right.
 * Returns their number. */
unsigned reduction_cover(unsigned leaves, unsigned first, unsigned end,
                         struct reduction_subtree subtrees[REDUCTION_COVER_MAX]);

/* Says how to sum a subtree of `count` leaves, one leaf after another, with a stack of partial sums: compute
 * leaf `leaf` (from 0) into slot *ret_slot, then, *ret_merges times, add the topmost slot to the one below it. */
void reduction_leaf_place(unsigned count, unsigned leaf, unsigned *ret_slot, unsigned *ret_merges);

/* Lists the additions by which sums over adjacent subtrees (`inputs`, from leaf `first` to `end`) become the sums
 * over the cover of that range. Returns their number, which is less than that of the inputs. ret_outputs[i] is the
 * input that then holds the sum over subtree i of the cover. */
unsigned reduction_merges(unsigned leaves, unsigned first, unsigned end, const struct reduction_subtree *inputs,
                          struct reduction_merge *ret_merges, unsigned ret_outputs[REDUCTION_COVER_MAX]);

/* The sum over all ranks' covers, as a program for a stack machine. */
struct reduction_plan;
/* ERROR_INVALID unless there are at least as many leaves as ranks, and at most REDUCTION_LEAVES_MAX. */
int reduction_plan_new(unsigned leaves, unsigned ranks, struct reduction_plan **ret_plan, struct error *error);
void reduction_plan_free(struct reduction_plan *plan);
/* Returns the same sum as in-place additions, one fewer than there are contributions. The array
 * lives as long as the plan. */
const struct reduction_merge *reduction_plan_merges(const struct reduction_plan *plan);
/* Returns how many subtrees `rank` contributes. */
unsigned reduction_plan_contributions(const struct reduction_plan *plan, unsigned rank);
/* result[i] = tree sum of inputs[..][i], inputs in leaf order; has the type of
 * collective_reduction.combine. */
void reduction_plan_combine(const void *plan, const float *const *inputs, float *result, size_t elements);

#endif
