/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/memory.h"
#include "worker/optimizer/training_state.h"
#include "worker/strategy/pipeline_parts.h"

/* ---- one micro-batch */

static float *slot_memory(const struct pipeline_store *store, unsigned subtree, unsigned slot)
{
    return slot == 0 ? store->gradients[subtree] : store->partial[slot];
}

static void merge_slots(const struct pipeline_unit *unit, unsigned subtree, unsigned slot, unsigned merges)
{
    for (; merges > 0; merges--, slot--)
        for (unsigned r = 0; r < unit->range_count; r++) {
            const struct graph_bucket *range = &unit->ranges[r];
            device_axpy(unit->stream,
                        &(struct axpy){range->elements, 1.0f, slot_memory(unit->store, subtree, slot) + range->offset,
                                       slot_memory(unit->store, subtree, slot - 1) + range->offset});
        }
}

/* Where a micro-batch stands in the reduction tree. */
struct leaf {
    unsigned subtree, slot, merges;
    bool accumulate; /* a right child is added to its sibling by the pass itself */
};

static struct leaf find_leaf(const struct pipeline_share *share, unsigned micro_batch)
{
    struct leaf leaf = {0};
    unsigned shard = share->first + micro_batch;
    while (shard >= share->cover[leaf.subtree].first + share->cover[leaf.subtree].count)
        leaf.subtree++;
    const struct reduction_subtree *subtree = &share->cover[leaf.subtree];
    reduction_leaf_place(subtree->count, shard - subtree->first, &leaf.slot, &leaf.merges);
    leaf.accumulate = leaf.merges > 0;
    leaf.slot -= leaf.accumulate;
    leaf.merges -= leaf.accumulate;
    return leaf;
}

static struct graph_stage_pass prepare(const struct pipeline_unit *unit, struct pipeline_action action,
                                       const struct leaf *leaf)
{
    const struct pipeline *pipeline = unit->pipeline;
    const struct pipeline_share *share = unit->share;
    const struct example_format *format = graph_example_format(unit->graph);
    const struct pipeline_piece *piece = &share->pieces[action.micro_batch];
    return (struct graph_stage_pass){
        .pass =
            {
                .parameters = training_state_part(pipeline->base.options.state, unit->store->part).parameters,
                .inputs = (char *)share->batch->inputs + (size_t)piece->offset * example_input_bytes(format),
                .targets = (char *)share->batch->targets + (size_t)piece->offset * example_target_bytes(format),
                .examples = piece->count,
                .scale = pipeline->scale,
                .loss_scale = strategy_loss_scale_for_passes(&pipeline->base.options),
                .gradients = slot_memory(unit->store, leaf->subtree, leaf->slot),
                .accumulate = leaf->accumulate,
                .sums = &share->sums[action.micro_batch],
                .seed = (uint64_t)pipeline->base.options.state->progress.seed,
                .step = pipeline->base.options.state->progress.step + 1,
                .weights_stand = !pipeline->evaluates && (action.work != PIPELINE_FORWARD || action.micro_batch > 0),
                .first_example = piece->first,
            },
        .slot = action.micro_batch % unit->slots,
        .values = unit->values,
        .gradients = unit->gradients,
    };
}

int pipeline_unit_launch(struct pipeline_unit *unit, struct pipeline_action action, struct error *error)
{
    struct leaf leaf = {0};
    if (!unit->pipeline->evaluates)
        leaf = find_leaf(unit->share, action.micro_batch);
    struct graph_stage_pass pass = prepare(unit, action, &leaf);
    if (unit->pipeline->evaluates)
        return graph_stage_evaluate(unit->graph, unit->stream, &pass, error);
    if (action.work == PIPELINE_FORWARD)
        return graph_stage_forward(unit->graph, unit->stream, &pass, error);
    if (graph_stage_backward(unit->graph, unit->stream, &pass, error) < 0)
        return -1;
    merge_slots(unit, leaf.subtree, leaf.slot, leaf.merges);
    return 0;
}

/* ---- life cycle */

static int plan_graph(struct pipeline *pipeline, struct pipeline_unit *unit, struct error *error)
{
    const struct strategy_options *options = &pipeline->base.options;
    unsigned most = pipeline_most_micro_batches(pipeline);
    unit->slots = pipeline_slots(pipeline->partition.depth[unit->part], pipeline->partition.depths, most);
    const struct graph_options graph = {
        .device = unit->device,
        .model = options->pipeline.model,
        .precision = graph_precision(options->graph),
        .max_examples = graph_max_examples(options->graph),
        .logit_rows = graph_logit_rows(options->graph),
        .partition = &pipeline->partition,
        .part = unit->part,
        .held = unit->store->holds,
        .slots = unit->slots,
        .recompute = options->pipeline.recompute,
        .plan_only = pipeline->plan_only,
    };
    if (graph_new(&graph, &unit->graph, error) < 0)
        return error_wrap(error, "stage %u", unit->stage);
    unit->range_count = graph_stage_ranges(unit->graph, NULL);
    unit->ranges = memory_allocate(unit->range_count + 1, sizeof *unit->ranges);
    graph_stage_ranges(unit->graph, unit->ranges);
    return 0;
}

int pipeline_unit_init(struct pipeline *pipeline, struct pipeline_unit *unit, const struct pipeline_lane *lane,
                       unsigned part, struct error *error)
{
    *unit = (struct pipeline_unit){.pipeline = pipeline,
                                   .lane = lane,
                                   .share = lane->share,
                                   .store = lane->store,
                                   .part = part,
                                   .stage = lane->stage,
                                   .device = lane->device,
                                   .stream = lane->stream};
    if (plan_graph(pipeline, unit, error) < 0)
        return -1;
    pipeline_passing_init(unit);
    return 0;
}

void pipeline_unit_release(struct pipeline_unit *unit)
{
    pipeline_passing_release(unit);
    graph_free(unit->graph);
    free(unit->ranges);
    *unit = (struct pipeline_unit){0};
}
