/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/replica_lanes.h"

#include <stdlib.h>

#include "common/memory.h"
#include "worker/device/shard_exchange.h"
#include "worker/model/graph.h"

/* A shard's. The first of each subtree leaves its gradient where the subtree's sum is wanted. */
struct lane {
    struct shard_exchange *exchange;
    unsigned shard;
    struct graph *graph;
    struct device_stream *stream;
    struct device_event *passed;
    float *gradients, *own_gradients;
};

struct replica_lanes {
    struct device *device;
    unsigned count;
    struct lane *lanes;
};

static int open_lane(const struct replica *replica, struct lane *lane, struct error *error)
{
    const struct strategy_options *options = &replica->options;
    const struct graph_options graph = {
        .device = options->device,
        .model = options->pipeline.model,
        .precision = graph_precision(options->graph),
        .max_examples = graph_max_examples(options->graph),
        .logit_rows = graph_logit_rows(options->graph),
    };
    size_t bytes = (size_t)graph_layout(options->graph)->elements * sizeof(float);
    if (device_stream_new(options->device, &lane->stream, error) < 0 ||
        device_event_new(options->device, &lane->passed, error) < 0 || graph_new(&graph, &lane->graph, error) < 0)
        return -1;
    if (lane->gradients != NULL)
        return 0;
    void *memory;
    if (device_allocate(options->device, MEMORY_DEVICE, bytes, &memory, error) < 0)
        return -1;
    lane->gradients = lane->own_gradients = memory;
    return 0;
}

int replica_lanes_new(struct replica *replica, struct replica_lanes **ret_lanes, struct error *error)
{
    struct replica_lanes *lanes = memory_allocate(1, sizeof *lanes);
    lanes->device = replica->options.device;
    lanes->count = replica->end - replica->first;
    lanes->lanes = memory_allocate(lanes->count, sizeof *lanes->lanes);
    for (unsigned subtree = 0; subtree < replica->cover_count; subtree++)
        lanes->lanes[replica->cover[subtree].first - replica->first].gradients = replica->gradients[subtree];
    for (unsigned i = 0; i < lanes->count; i++) {
        lanes->lanes[i].exchange = replica->exchange;
        lanes->lanes[i].shard = replica->first + i;
        if (open_lane(replica, &lanes->lanes[i], error) < 0) {
            replica_lanes_free(lanes);
            return -1;
        }
    }
    *ret_lanes = lanes;
    return 0;
}

void replica_lanes_free(struct replica_lanes *lanes)
{
    if (lanes == NULL)
        return;
    for (unsigned i = 0; i < lanes->count; i++) {
        struct lane *lane = &lanes->lanes[i];
        if (lane->stream != NULL)
            device_stream_free(lane->stream);
        if (lane->passed != NULL)
            device_event_free(lane->passed);
        if (lane->own_gradients != NULL)
            device_free(lanes->device, lane->own_gradients);
        graph_free(lane->graph);
    }
    free(lanes->lanes);
    free(lanes);
}

/* In the tree's order, once all passes are over. */
static void sum_subtree(struct replica *replica, unsigned subtree)
{
    const struct reduction_subtree *cover = &replica->cover[subtree];
    float *stack[REDUCTION_DEPTH_MAX];
    for (unsigned leaf = 0; leaf < cover->count; leaf++) {
        unsigned slot, merges;
        reduction_leaf_place(cover->count, leaf, &slot, &merges);
        stack[slot] = replica->lanes->lanes[cover->first + leaf - replica->first].gradients;
        for (; merges > 0; merges--, slot--)
            device_axpy(replica->stream, &(struct axpy){.count = graph_layout(replica->options.graph)->elements,
                                                        .factor = 1.0f,
                                                        .x = stack[slot],
                                                        .y = stack[slot - 1]});
    }
}

/* On the lane's thread. */
static void leave_exchange(void *context)
{
    const struct lane *lane = context;
    if (lane->exchange->leave != NULL)
        lane->exchange->leave(lane->exchange, lane->shard);
}

int replica_lanes_start(struct replica *replica, struct error *error)
{
    struct replica_lanes *lanes = replica->lanes;
    for (unsigned i = 0; i < lanes->count; i++) {
        struct lane *lane = &lanes->lanes[i];
        struct graph_pass pass = replica_pass(replica, replica->first + i);
        pass.gradients = lane->gradients;
        if (graph_forward_backward(lane->graph, lane->stream, &pass, error) < 0)
            return -1;
        device_stream_call(lane->stream, leave_exchange, lane);
        device_event_record(lane->passed, lane->stream);
        device_stream_wait(replica->stream, lane->passed);
    }
    for (unsigned subtree = 0; subtree < replica->cover_count; subtree++)
        sum_subtree(replica, subtree);
    return 0;
}

int replica_lanes_check(const struct replica_lanes *lanes, struct error *error)
{
    for (unsigned i = 0; i < lanes->count; i++)
        if (device_event_wait(lanes->lanes[i].passed, error) < 0)
            return -1;
    return 0;
}
