/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/reduction_tree.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define ELEMENTS 1300

/* Returns values whose sum depends on the order of additions. */
static float leaf_value(unsigned leaf, unsigned element)
{
    unsigned hash = (leaf * 2654435761u) ^ (element * 40503u + 17u);
    return (float)((int)(hash % 2000003u) - 1000000) * (hash & 1u ? 1e-3f : 1e3f);
}

static float tree_sum(unsigned first, unsigned count, unsigned element)
{
    if (count == 1)
        return leaf_value(first, element);
    unsigned left = (count + 1) / 2;
    return tree_sum(first, left, element) + tree_sum(first + left, count - left, element);
}

Test(reduction_tree, covers_own_exactly_the_leaves_of_a_rank)
{
    for (unsigned leaves = 1; leaves <= 40; leaves++) {
        for (unsigned ranks = 1; ranks <= leaves; ranks++) {
            unsigned next = 0;
            for (unsigned rank = 0; rank < ranks; rank++) {
                unsigned first, end;
                struct reduction_subtree subtrees[REDUCTION_COVER_MAX];
                reduction_rank_leaves(leaves, rank, ranks, &first, &end);
                cr_assert_eq(first, next);
                unsigned count = reduction_cover(leaves, first, end, subtrees);
                for (unsigned i = 0; i < count; i++) {
                    cr_assert_eq(subtrees[i].first, next);
                    next += subtrees[i].count;
                }
                cr_assert_eq(next, end);
            }
            cr_assert_eq(next, leaves);
        }
    }
}

Test(reduction_tree, the_largest_cover_fits)
{
    struct reduction_subtree subtrees[REDUCTION_COVER_MAX];
    cr_assert_leq(reduction_cover(REDUCTION_LEAVES_MAX, 1, REDUCTION_LEAVES_MAX - 1, subtrees), REDUCTION_COVER_MAX);
}

/* Sums each subtree with the stack of slots that a strategy uses. */
static void sum_by_slots(struct reduction_subtree subtree, float *result)
{
    static float slots[REDUCTION_DEPTH_MAX][ELEMENTS];
    for (unsigned leaf = 0; leaf < subtree.count; leaf++) {
        unsigned slot, merges;
        reduction_leaf_place(subtree.count, leaf, &slot, &merges);
        cr_assert_lt(slot, REDUCTION_DEPTH_MAX);
        for (unsigned i = 0; i < ELEMENTS; i++)
            slots[slot][i] = leaf_value(subtree.first + leaf, i);
        for (; merges > 0; merges--, slot--)
            for (unsigned i = 0; i < ELEMENTS; i++)
                slots[slot - 1][i] += slots[slot][i];
    }
    memcpy(result, slots[0], sizeof(slots[0]));
}

static void check_sum(unsigned leaves, unsigned ranks)
{
    struct reduction_plan *plan;
    cr_assert_eq(reduction_plan_new(leaves, ranks, &plan, NULL), 0);
    float *inputs[REDUCTION_COVER_MAX * 64];
    unsigned count = 0;
    for (unsigned rank = 0; rank < ranks; rank++) {
        unsigned first, end;
        struct reduction_subtree subtrees[REDUCTION_COVER_MAX];
        reduction_rank_leaves(leaves, rank, ranks, &first, &end);
        unsigned own = reduction_cover(leaves, first, end, subtrees);
        cr_assert_eq(own, reduction_plan_contributions(plan, rank));
        for (unsigned i = 0; i < own; i++) {
            inputs[count] = malloc(ELEMENTS * sizeof(float));
            sum_by_slots(subtrees[i], inputs[count++]);
        }
    }
    /* In place, as a strategy does it. */
    reduction_plan_combine(plan, (const float *const *)inputs, inputs[0], ELEMENTS);
    for (unsigned i = 0; i < ELEMENTS; i++)
        cr_assert_eq(inputs[0][i], tree_sum(0, leaves, i), "%u leaves on %u ranks, element %u", leaves, ranks, i);
    while (count > 0)
        free(inputs[--count]);
    reduction_plan_free(plan);
}

Test(reduction_tree, sums_have_the_same_bits_for_any_number_of_ranks)
{
    for (unsigned leaves = 1; leaves <= 17; leaves++)
        for (unsigned ranks = 1; ranks <= leaves; ranks++)
            check_sum(leaves, ranks);
    check_sum(64, 48);
    check_sum(1000, 7);
}

Test(reduction_tree, fewer_leaves_than_ranks_are_refused)
{
    struct reduction_plan *plan;
    struct error error = ERROR_INIT;
    cr_assert_eq(reduction_plan_new(3, 4, &plan, &error), -1);
    cr_assert_eq(error.kind, ERROR_INVALID);
    cr_assert_eq(reduction_plan_new(REDUCTION_LEAVES_MAX + 1, 4, &plan, &error), -1);
}
