/* SPDX-License-Identifier: Apache-2.0 */
#include "common/memory.h"
#include "worker/model/graph_internal.h"

int graph_output_owner(const struct graph *graph, int node)
{
    while (node != MODEL_INPUT && graph->nodes[node].in_place)
        node = graph->nodes[node].inputs[0];
    return node;
}

/* Steps: layer i runs at step i, the loss at step N, layer i's backward at step 2N - i. */
static int backward_step(const struct graph *graph, unsigned node)
{
    return 2 * (int)graph->node_count - (int)node;
}

static int add_block(struct graph *graph, int64_t elements, size_t element_bytes, int first, int last)
{
    if (elements <= 0)
        return NO_BLOCK;
    graph->blocks[graph->block_count] =
        (struct memory_block){.bytes = elements * (int64_t)element_bytes, .first = first, .last = last};
    return (int)graph->block_count++;
}

/* When an output is read for the last time: by its consumers, in a training pass also by their and its own backward. */
static int last_use(const struct graph *graph, unsigned node)
{
    if (!graph->evaluation_only)
        return backward_step(graph, node);
    int last = (int)node;
    for (unsigned i = node; i < graph->node_count; i++)
        for (unsigned k = 0; k < graph->nodes[i].layer.input_count; k++)
            if (graph_output_owner(graph, graph->nodes[i].inputs[k]) == (int)node)
                last = (int)i;
    return graph_output_owner(graph, (int)graph->node_count - 1) == (int)node ? (int)graph->node_count : last;
}

static void plan_activations(struct graph *graph, unsigned number)
{
    struct graph_node *node = &graph->nodes[number];
    const struct layer *layer = &node->layer;
    int64_t n = graph->max_examples;
    if (!node->in_place)
        node->output = add_block(graph, n * layer_shape_elements(&layer->output), sizeof(float), (int)number,
                                 last_use(graph, number));
    if (layer->kind->kept)
        node->kept = add_block(graph, layer->kind->kept(layer, n), sizeof(float), (int)number,
                               graph->evaluation_only ? (int)number : backward_step(graph, number));
}

/* A gradient lives from the backward of its last consumer (or the loss) to the layer's own backward; one that an
 * in-place layer passes on lives until the layer before is done. */
static void plan_gradient(struct graph *graph, unsigned number)
{
    struct graph_node *node = &graph->nodes[number];
    unsigned first_user = graph->node_count;
    for (unsigned i = graph->node_count; i-- > number + 1;)
        for (unsigned k = 0; k < graph->nodes[i].layer.input_count; k++)
            if (graph->nodes[i].inputs[k] == (int)number && first_user == graph->node_count)
                first_user = i;
    int end = (int)number;
    while (graph->nodes[end].gradient_in_place && graph->nodes[end].inputs[0] != MODEL_INPUT)
        end = graph->nodes[end].inputs[0];
    node->gradient = add_block(graph, graph->max_examples * layer_shape_elements(&node->layer.output), sizeof(float),
                               backward_step(graph, first_user), backward_step(graph, (unsigned)end));
}

/* Whether the only consumer of a layer hands its own gradient on as the layer's. */
static bool shares_gradient(const struct graph *graph, unsigned number)
{
    if (graph->nodes[number].consumers != 1)
        return false;
    for (unsigned i = number + 1; i < graph->node_count; i++)
        if (graph->nodes[i].inputs[0] == (int)number)
            return graph->nodes[i].gradient_in_place;
    return false;
}

static void plan_gradients(struct graph *graph)
{
    int64_t spare = 0;
    for (unsigned i = graph->node_count; i-- > 0;) {
        struct graph_node *node = &graph->nodes[i];
        if (!node->needs_gradient)
            continue;
        if (!shares_gradient(graph, i))
            plan_gradient(graph, i);
        int64_t elements = graph->max_examples * layer_shape_elements(&node->layer.output);
        if (node->consumers > 1 && elements > spare)
            spare = elements;
    }
    for (unsigned i = graph->node_count; i-- > 0;) {
        struct graph_node *node = &graph->nodes[i];
        if (node->gradient_in_place && node->inputs[0] != MODEL_INPUT &&
            shares_gradient(graph, (unsigned)node->inputs[0]))
            graph->nodes[node->inputs[0]].gradient = node->gradient;
    }
    graph->spare = add_block(graph, spare, sizeof(float), (int)graph->node_count, backward_step(graph, 0));
}

static int64_t workspace_floats(const struct graph *graph)
{
    int64_t most = 0;
    for (unsigned i = 0; i < graph->node_count; i++) {
        const struct layer *layer = &graph->nodes[i].layer;
        int64_t floats = layer->kind->workspace ? layer->kind->workspace(layer, graph->max_examples) : 0;
        most = floats > most ? floats : most;
    }
    return most;
}

/* Shared memory may be far from the device: what a pass reads more than once is copied first. */
static void plan_batch(struct graph *graph)
{
    graph->batch_inputs = graph->batch_targets = NO_BLOCK;
    if (device_memory_is_shared(graph->device))
        return;
    int end = backward_step(graph, 0);
    graph->batch_inputs = add_block(graph, graph->max_examples, example_input_bytes(&graph->format), 0, end);
    graph->batch_targets = add_block(graph, graph->max_examples, example_target_bytes(&graph->format), 0, end);
}

int graph_plan_memory(struct graph *graph, struct error *error)
{
    graph->blocks = memory_allocate(3 * graph->node_count + 5, sizeof *graph->blocks);
    plan_batch(graph);
    for (unsigned i = 0; i < graph->node_count; i++)
        plan_activations(graph, i);
    graph->spare = NO_BLOCK;
    if (!graph->evaluation_only)
        plan_gradients(graph);
    int end = backward_step(graph, 0), loss = (int)graph->node_count;
    int64_t rows = graph->max_examples * graph_loss_rows(graph);
    graph->workspace = add_block(graph, workspace_floats(graph), sizeof(float), 0, end);
    graph->loss_workspace = add_block(graph, 2 * rows, sizeof(double), loss, loss);
    graph->arena_bytes = memory_planner_place(graph->blocks, graph->block_count);
    graph->workspace_bytes = graph->workspace == NO_BLOCK ? 0 : graph->blocks[graph->workspace].bytes;
    graph->activation_bytes = graph->arena_bytes - graph->workspace_bytes;
    void *arena = NULL;
    if (device_allocate(graph->device, MEMORY_DEVICE, (size_t)graph->arena_bytes, &arena, error) < 0)
        return error_wrap(error,
                          "the memory plan of a pass of %lld examples does not fit; write a smaller batch or more "
                          "logical shards",
                          (long long)graph->max_examples);
    graph->arena = arena;
    return 0;
}

/* Closes the range [offset, end) of gradients that layer `number` makes final, in pieces of about a bucket's size. */
static void cut_range(struct graph *graph, int64_t offset, int64_t end, unsigned number)
{
    int64_t elements = end - offset, limit = GRAPH_BUCKET_BYTES / (int64_t)sizeof(float);
    int64_t pieces = (elements + limit - 1) / limit;
    for (int64_t p = pieces; p-- > 0;) {
        int64_t first = offset + elements * p / pieces;
        graph->buckets[graph->bucket_count] =
            (struct graph_bucket){first, offset + elements * (p + 1) / pieces - first};
        graph->bucket_layers[graph->bucket_count++] = number;
    }
}

int graph_plan_buckets(struct graph *graph, struct error *error)
{
    int64_t limit = GRAPH_BUCKET_BYTES / (int64_t)sizeof(float), end = graph->layout.elements;
    size_t most = graph->node_count + (size_t)(end / limit) + 1;
    graph->buckets = memory_allocate(most, sizeof *graph->buckets);
    graph->bucket_layers = memory_allocate(most, sizeof *graph->bucket_layers);
    graph->bucket_events = memory_allocate(most, sizeof(struct device_event *));
    for (unsigned i = graph->node_count; i-- > 0;) {
        if (graph->nodes[i].layer.parameter_count == 0)
            continue;
        int64_t offset = graph->tensors[graph->nodes[i].first_tensor].offset;
        if (end - offset >= limit / 2 || offset == 0) {
            cut_range(graph, offset, end, i);
            end = offset;
        }
    }
    for (unsigned b = 0; b < graph->bucket_count; b++)
        if (device_event_new(graph->device, &graph->bucket_events[b], error) < 0)
            return -1;
    return 0;
}
