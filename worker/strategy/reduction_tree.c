/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/reduction_tree.h"

#include <stdint.h>
#include <string.h>

#include "common/memory.h"
#include "common/vectorised.h"
#include "worker/comm/collective.h"

/* Elements that are summed at a time: partial sums of all depths stay in the first-level cache. */
#define BLOCK 512

static unsigned split(unsigned count)
{
    return (count + 1) / 2;
}

void reduction_rank_leaves(unsigned leaves, unsigned rank, unsigned ranks, unsigned *ret_first, unsigned *ret_end)
{
    *ret_first = (unsigned)((uint64_t)leaves * rank / ranks);
    *ret_end = (unsigned)((uint64_t)leaves * (rank + 1) / ranks);
}

/* Adds to the cover what of the node [first, first + count) lies within [from, end). */
static unsigned cover_node(unsigned first, unsigned count, unsigned from, unsigned end,
                           struct reduction_subtree *subtrees, unsigned have)
{
    if (first >= end || first + count <= from)
        return have;
    if (first >= from && first + count <= end) {
        subtrees[have] = (struct reduction_subtree){first, count};
        return have + 1;
    }
    unsigned left = split(count);
    have = cover_node(first, left, from, end, subtrees, have);
    return cover_node(first + left, count - left, from, end, subtrees, have);
}

unsigned reduction_cover(unsigned leaves, unsigned first, unsigned end,
                         struct reduction_subtree subtrees[REDUCTION_COVER_MAX])
{
    return cover_node(0, leaves, first, end, subtrees, 0);
}

void reduction_leaf_place(unsigned count, unsigned leaf, unsigned *ret_slot, unsigned *ret_merges)
{
    unsigned slot = 0, merges = 0;
    while (count > 1) {
        unsigned left = split(count);
        if (leaf < left) {
            count = left;
            merges = 0;
        } else {
            leaf -= left;
            count -= left;
            slot++;
            merges++;
        }
    }
    *ret_slot = slot;
    *ret_merges = merges;
}

struct merge_builder {
    const struct reduction_subtree *inputs;
    unsigned next_input;
    struct reduction_merge *merges;
    unsigned merge_count;
};

/* The input that holds the sum over the node: its leftmost. */
static unsigned merge_node(struct merge_builder *builder, unsigned first, unsigned count)
{
    const struct reduction_subtree *input = &builder->inputs[builder->next_input];
    if (input->first == first && input->count == count)
        return builder->next_input++;
    unsigned left = split(count);
    unsigned into = merge_node(builder, first, left);
    unsigned from = merge_node(builder, first + left, count - left);
    builder->merges[builder->merge_count++] = (struct reduction_merge){into, from};
    return into;
}

unsigned reduction_merges(unsigned leaves, unsigned first, unsigned end, const struct reduction_subtree *inputs,
                          struct reduction_merge *ret_merges, unsigned ret_outputs[REDUCTION_COVER_MAX])
{
    struct merge_builder builder = {.inputs = inputs, .merges = ret_merges};
    struct reduction_subtree cover[REDUCTION_COVER_MAX];
    unsigned outputs = reduction_cover(leaves, first, end, cover);
    for (unsigned i = 0; i < outputs; i++)
        ret_outputs[i] = merge_node(&builder, cover[i].first, cover[i].count);
    return builder.merge_count;
}

/* A program in postfix order: an input is pushed, STEP_ADD adds the two on top. */
#define STEP_ADD UINT32_MAX

struct reduction_plan {
    unsigned contributions[CREW_SIZE_MAX];
    uint32_t *steps;
    unsigned step_count;
    struct reduction_merge *merges;
};

struct plan_builder {
    struct reduction_plan *plan;
    const struct reduction_subtree *inputs;
    unsigned next_input;
};

static void build_node(struct plan_builder *builder, unsigned first, unsigned count)
{
    const struct reduction_subtree *input = &builder->inputs[builder->next_input];
    if (input->first == first && input->count == count) {
        builder->plan->steps[builder->plan->step_count++] = builder->next_input++;
        return;
    }
    unsigned left = split(count);
    build_node(builder, first, left);
    build_node(builder, first + left, count - left);
    builder->plan->steps[builder->plan->step_count++] = STEP_ADD;
}

int reduction_plan_new(unsigned leaves, unsigned ranks, struct reduction_plan **ret_plan, struct error *error)
{
    if (ranks < 1 || ranks > CREW_SIZE_MAX || leaves < ranks || leaves > REDUCTION_LEAVES_MAX)
        return error_set(error, ERROR_INVALID,
                         "%u logical shards for %u workers: training.logicalShards must be between the number of "
                         "workers and %d",
                         leaves, ranks, REDUCTION_LEAVES_MAX);
    struct reduction_subtree inputs[CREW_SIZE_MAX * REDUCTION_COVER_MAX];
    struct reduction_plan *plan = memory_allocate(1, sizeof(*plan));
    unsigned count = 0;
    for (unsigned rank = 0; rank < ranks; rank++) {
        unsigned first, end;
        reduction_rank_leaves(leaves, rank, ranks, &first, &end);
        plan->contributions[rank] = reduction_cover(leaves, first, end, inputs + count);
        count += plan->contributions[rank];
    }
    plan->steps = memory_allocate(2 * count, sizeof(*plan->steps));
    plan->merges = memory_allocate(count, sizeof(*plan->merges));
    unsigned root[REDUCTION_COVER_MAX];
    build_node(&(struct plan_builder){.plan = plan, .inputs = inputs}, 0, leaves);
    reduction_merges(leaves, 0, leaves, inputs, plan->merges, root);
    *ret_plan = plan;
    return 0;
}

void reduction_plan_free(struct reduction_plan *plan)
{
    if (plan == NULL)
        return;
    free(plan->steps);
    free(plan->merges);
    free(plan);
}

const struct reduction_merge *reduction_plan_merges(const struct reduction_plan *plan)
{
    return plan->merges;
}

unsigned reduction_plan_contributions(const struct reduction_plan *plan, unsigned rank)
{
    return plan->contributions[rank];
}

VECTORISED static void add_block(const float *left, const float *right, float *sum, size_t elements)
{
    for (size_t i = 0; i < elements; i++)
        sum[i] = left[i] + right[i];
}

/* Partial sums of one block. The sum of stack positions d and d + 1 is kept in scratch[d], or in `result` at the root; so
 * inputs are read in place. */
static void combine_block(const struct reduction_plan *plan, const float *const *inputs, size_t offset, float *result,
                          size_t elements)
{
    float scratch[REDUCTION_DEPTH_MAX][BLOCK];
    const float *stack[REDUCTION_DEPTH_MAX + 1];
    unsigned depth = 0;
    for (unsigned i = 0; i < plan->step_count; i++) {
        if (plan->steps[i] != STEP_ADD) {
            stack[depth++] = inputs[plan->steps[i]] + offset;
            continue;
        }
        depth--;
        float *sum = i + 1 == plan->step_count ? result + offset : scratch[depth - 1];
        add_block(stack[depth - 1], stack[depth], sum, elements);
        stack[depth - 1] = sum;
    }
    if (plan->step_count == 1 && stack[0] != result + offset)
        memcpy(result + offset, stack[0], elements * sizeof(float));
}

void reduction_plan_combine(const void *context, const float *const *inputs, float *result, size_t elements)
{
    const struct reduction_plan *plan = context;
    for (size_t offset = 0; offset < elements; offset += BLOCK) {
        size_t left = elements - offset;
        combine_block(plan, inputs, offset, result, left < BLOCK ? left : BLOCK);
    }
}
