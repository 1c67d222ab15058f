/* SPDX-License-Identifier: Apache-2.0
 *
 * What a process's stages will take, from an outline of them: lanes, units, stores
 * and shares as they will be, with graphs that have no memory.
 */
#include "worker/model/graph.h"
#include "worker/optimizer/optimizer.h"
#include "worker/strategy/device_sums.h"
#include "worker/strategy/pipeline_parts.h"

static bool is_far(const struct pipeline *pipeline)
{
    return !device_memory_is_shared(pipeline->base.options.device);
}

static bool is_direct(const struct pipeline *pipeline)
{
    return pipeline->shape.size > 1 && pipeline->base.options.communicator != NULL;
}

/* Of what lies in the layout of this process's stages, one flat array. */
static int64_t flat_bytes(const struct pipeline *pipeline)
{
    return graph_layout(pipeline->units[0].graph)->elements * (int64_t)sizeof(float);
}

static void add_streams(const struct pipeline *pipeline, int64_t count, struct memory_plans *plans)
{
    if (is_far(pipeline))
        plans->device.bytes[MEMORY_STREAMS] += count * device_stream_bytes(pipeline->base.options.device);
}

/* In a crew it is that of these stages alone. The host has a copy of what is far. */
static void plan_state(const struct pipeline *pipeline, struct memory_plans *plans)
{
    struct memory_plan state = {0};
    if (pipeline->shape.size == 1)
        return;
    state.bytes[MEMORY_PARAMETERS] = flat_bytes(pipeline);
    state.bytes[MEMORY_OPTIMIZER] = flat_bytes(pipeline) * optimizer_slot_count(pipeline->base.options.optimizer);
    memory_plan_add(&plans->host, &state);
    if (is_far(pipeline))
        memory_plan_add(&plans->device, &state);
    add_streams(pipeline, 1, plans);
}

static void plan_share(const struct pipeline *pipeline, const struct pipeline_share *share, struct memory_plans *plans)
{
    const struct strategy_options *options = &pipeline->base.options;
    const struct example_format *format = graph_example_format(options->graph);
    int64_t example = (int64_t)(example_input_bytes(format) + example_target_bytes(format));
    int64_t sums = share->cover_count + pipeline_share_partial_sums(share);
    memory_plans_of(plans, options->device)->bytes[MEMORY_GRADIENTS] += sums * flat_bytes(pipeline);
    if (is_far(pipeline) && pipeline->shape.size > 1)
        plans->host.bytes[MEMORY_GRADIENTS] += share->cover_count * flat_bytes(pipeline);
    if (share->reads)
        plans->host.bytes[MEMORY_INPUT] += 2 * share->max_examples * example;
}

/* What comes from another process has a place, by NCCL one for each of its slots; what goes there by the host has a copy of each, if
 * the host cannot read the device's memory. */
static void plan_crossing(const struct pipeline *pipeline, const struct pipeline_unit *unit,
                          const struct graph_crossing *crossing, struct memory_plans *plans)
{
    const struct graph_partition *partition = &pipeline->partition;
    int64_t bytes = (int64_t)pipeline_passing_bytes(pipeline, crossing);
    bool direct = is_direct(pipeline), comes = crossing->to == unit->part && !unit->share->units[crossing->from];
    bool goes = crossing->from == unit->part && !unit->share->units[crossing->to];
    if (comes && direct)
        plans->device.bytes[MEMORY_EXCHANGE] +=
            bytes *
            pipeline_slots(partition->depth[crossing->from], partition->depths, pipeline_most_micro_batches(pipeline));
    else if (comes)
        plans->host.bytes[MEMORY_EXCHANGE] += bytes;
    else if (goes && !direct && is_far(pipeline))
        plans->host.bytes[MEMORY_EXCHANGE] += bytes * unit->slots;
}

static void plan_unit(const struct pipeline *pipeline, const struct pipeline_unit *unit, struct memory_plans *plans)
{
    struct memory_plan pass, *near = memory_plans_of(plans, unit->device);
    graph_memory_plan(unit->graph, 0, &pass);
    near->bytes[MEMORY_ACTIVATIONS] += pass.bytes[MEMORY_ACTIVATIONS];
    near->bytes[MEMORY_WORKSPACE] += pass.bytes[MEMORY_WORKSPACE];
    for (unsigned i = 0; i < pipeline->value_count; i++)
        plan_crossing(pipeline, unit, &pipeline->values[i], plans);
    for (unsigned i = 0; i < pipeline->gradient_count; i++)
        plan_crossing(pipeline, unit, &pipeline->gradients[i], plans);
}

/* The update has a stream beside the lanes', and so has NCCL. */
static void plan_streams(const struct pipeline *pipeline, struct memory_plans *plans)
{
    const struct strategy_options *options = &pipeline->base.options;
    const struct parameter_layout *layout = graph_layout(pipeline->units[0].graph);
    const struct strategy_device only = {.device = options->device};
    const struct device_sums_options sums = {.devices = &only,
                                             .device_count = 1,
                                             .size = pipeline->shape.replicas,
                                             .shards = options->logical_shards,
                                             .elements = layout->elements - layout->copies};
    add_streams(pipeline, (int64_t)pipeline->lane_count + 1 + is_direct(pipeline), plans);
    if (is_direct(pipeline) && sums.size > 1)
        device_sums_memory_plan(&sums, plans);
}

static void plan_stages(const struct pipeline *pipeline, struct memory_plans *plans)
{
    plan_state(pipeline, plans);
    for (unsigned s = 0; s < pipeline->share_count; s++)
        plan_share(pipeline, &pipeline->shares[s], plans);
    for (unsigned i = 0; i < pipeline->unit_count; i++)
        plan_unit(pipeline, &pipeline->units[i], plans);
    plan_streams(pipeline, plans);
}

/* What keeps it from being outlined keeps it from being opened, which says so. */
void pipeline_memory_plan(const struct strategy_options *options, struct memory_plans *plans)
{
    struct pipeline *pipeline;
    if (pipeline_new(options, &pipeline, NULL) < 0)
        return;
    if (pipeline->partition.stage_of != NULL && pipeline_outline(pipeline, NULL) == 0)
        plan_stages(pipeline, plans);
    pipeline_free(pipeline);
}
