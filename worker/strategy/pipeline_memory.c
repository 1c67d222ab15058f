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
    return pipeline->shape.size > 1 && pipeline->base.options.sums.communicator != NULL;
}

/* One flat array. */
static int64_t flat_bytes(const struct parameter_layout *layout)
{
    return layout->elements * (int64_t)sizeof(float);
}

static void add_state(const struct pipeline *pipeline, const struct parameter_layout *layout, struct memory_plan *plan)
{
    plan->bytes[MEMORY_PARAMETERS] += flat_bytes(layout);
    plan->bytes[MEMORY_OPTIMIZER] += flat_bytes(layout) * optimizer_slot_count(pipeline->base.options.optimizer);
}

/* ---- what the host has of all stages here */

static void plan_share(const struct pipeline *pipeline, const struct pipeline_share *share, struct memory_plan *host)
{
    const struct example_format *format = graph_example_format(pipeline->base.options.graph);
    int64_t example = (int64_t)(example_input_bytes(format) + example_target_bytes(format));
    if (pipeline_copies_gradients(pipeline))
        host->bytes[MEMORY_GRADIENTS] += share->cover_count * flat_bytes(pipeline_layout(pipeline));
    if (share->reads)
        host->bytes[MEMORY_INPUT] += 2 * share->max_examples * example;
}

static void plan_host(const struct pipeline *pipeline, struct memory_plan *host)
{
    if (pipeline_makes_state(pipeline))
        add_state(pipeline, pipeline_layout(pipeline), host);
    for (unsigned s = 0; s < pipeline->share_count; s++)
        plan_share(pipeline, &pipeline->shares[s], host);
}

/* ---- what a store's stages have */

static const struct graph_crossing *crossing_at(const struct pipeline *pipeline, unsigned number)
{
    return number < pipeline->value_count ? &pipeline->values[number]
                                          : &pipeline->gradients[number - pipeline->value_count];
}

/* Data from another process needs memory, by NCCL for each of its slots; so does another GPU's gradient that is added. Data that goes to
 * a process through the host needs a copy for each slot if the host cannot read the device's memory. */
static void plan_crossing(const struct pipeline *pipeline, const struct pipeline_unit *unit, unsigned number,
                          struct memory_plans *plans)
{
    const struct graph_crossing *crossing = crossing_at(pipeline, number);
    const struct graph_partition *partition = &pipeline->partition;
    const struct pipeline_unit *from = unit->share->units[crossing->from], *to = unit->share->units[crossing->to];
    int64_t bytes = (int64_t)pipeline_passing_bytes(pipeline, crossing);
    bool direct = is_direct(pipeline), comes = to == unit && from == NULL, goes = from == unit && to == NULL;
    if (comes && direct)
        plans->device.bytes[MEMORY_EXCHANGE] +=
            bytes *
            pipeline_slots(partition->depth[crossing->from], partition->depths, pipeline_most_micro_batches(pipeline));
    else if (comes)
        plans->host.bytes[MEMORY_EXCHANGE] += bytes;
    else if (to == unit && pipeline_passing_has_arrival(unit, from, number))
        plans->device.bytes[MEMORY_EXCHANGE] += bytes;
    else if (goes && !direct && is_far(pipeline))
        plans->host.bytes[MEMORY_EXCHANGE] += bytes * unit->slots;
}

static void plan_unit(const struct pipeline *pipeline, const struct pipeline_unit *unit, struct memory_plans *plans)
{
    struct memory_plan pass, *near = memory_plans_of(plans, unit->device);
    graph_memory_plan(unit->graph, 0, &pass);
    near->bytes[MEMORY_ACTIVATIONS] += pass.bytes[MEMORY_ACTIVATIONS];
    near->bytes[MEMORY_WORKSPACE] += pass.bytes[MEMORY_WORKSPACE];
    for (unsigned number = 0; number < pipeline->value_count + pipeline->gradient_count; number++)
        plan_crossing(pipeline, unit, number, plans);
}

static void plan_sums(const struct pipeline *pipeline, const struct pipeline_store *store, struct memory_plans *plans)
{
    const struct strategy_options *options = &pipeline->base.options;
    const struct strategy_device only = {.device = options->device};
    const struct device_sums_options sums = {.devices = &only,
                                             .device_count = 1,
                                             .size = pipeline->shape.replicas,
                                             .shards = options->logical_shards,
                                             .elements = store->layout->elements - store->layout->copies};
    if (is_direct(pipeline) && sums.size > 1 && sums.elements > 0)
        device_sums_memory_plan(&sums, plans);
}

/* A GPU's update has a stream beside its lane's, and so have NCCL and the copies of the state. The worker's own, which is counted
 * already, is on the first GPU alone. */
static void plan_device(const struct pipeline *pipeline, const struct pipeline_store *store, struct memory_plans *plans)
{
    bool first = store->device == pipeline->base.options.device;
    int64_t streams = 2 + is_direct(pipeline) + pipeline_makes_state(pipeline) - !first;
    if (!is_far(pipeline))
        return;
    if (pipeline_makes_state(pipeline))
        add_state(pipeline, store->layout, &plans->device);
    plans->device.bytes[MEMORY_STREAMS] += streams * device_stream_bytes(store->device);
    plan_sums(pipeline, store, plans);
}

static void plan_store(const struct pipeline *pipeline, const struct pipeline_store *store, struct memory_plans *plans)
{
    int64_t sums = store->share->cover_count + pipeline_share_partial_sums(store->share);
    memory_plans_of(plans, store->device)->bytes[MEMORY_GRADIENTS] += sums * flat_bytes(store->layout);
    for (unsigned i = 0; i < pipeline->unit_count; i++)
        if (pipeline->units[i].store == store)
            plan_unit(pipeline, &pipeline->units[i], plans);
    plan_device(pipeline, store, plans);
}

/* With several GPUs, counts the one that needs most. */
static void plan_stages(const struct pipeline *pipeline, struct memory_plans *plans)
{
    struct memory_plan fullest = {0};
    plan_host(pipeline, &plans->host);
    for (unsigned i = 0; i < pipeline->store_count; i++) {
        struct memory_plans own = {0};
        plan_store(pipeline, &pipeline->stores[i], &own);
        memory_plan_add(&plans->host, &own.host);
        if (memory_plan_bytes(&own.device) > memory_plan_bytes(&fullest))
            fullest = own.device;
    }
    memory_plan_add(&plans->device, &fullest);
}

/* If the pipeline cannot be planned, it cannot be opened either, and opening it reports why. */
void pipeline_memory_plan(const struct strategy_options *options, struct memory_plans *plans)
{
    struct pipeline *pipeline;
    if (pipeline_new(options, &pipeline, NULL) < 0)
        return;
    if (pipeline->partition.stage_of != NULL && pipeline_outline(pipeline, NULL) == 0)
        plan_stages(pipeline, plans);
    pipeline_free(pipeline);
}
