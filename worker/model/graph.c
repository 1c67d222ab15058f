/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/model/graph.h"

#include <stdlib.h>

#include "common/memory.h"
#include "worker/model/graph_internal.h"
#include "worker/model/graph_program.h"
#include "worker/model/program.h"

/* Checks the layers that this graph runs. */
static int check_device(const struct graph *graph, struct error *error)
{
    for (unsigned i = 0; i < graph->node_count; i++) {
        const struct layer *layer = &graph->nodes[i].layer;
        if (!graph->nodes[i].own || layer->kind->check_device == NULL)
            continue;
        if (layer->kind->check_device(layer, graph->device, graph->stored, error) < 0)
            return error_wrap(error, "model.layers[%u] (%s)", i, layer->name);
    }
    return 0;
}

static int build(struct graph *graph, const struct graph_options *options, struct error *error)
{
    if (options->max_examples < 1)
        return error_set(error, ERROR_INVALID, "internal error: a graph for no examples; please report it");
    if (options->program != NULL)
        return graph_program_build(graph, options, error);
    if (graph_resolve_layers(graph, options->model, error) < 0)
        return -1;
    if (options->partition && graph_take_stage(graph, options, error) < 0)
        return -1;
    graph_lay_out_parameters(graph);
    graph->written = memory_allocate(graph->node_count, sizeof *graph->written);
    if (options->layout_only)
        return 0;
    if (check_device(graph, error) < 0)
        return -1;
    if (graph_plan_memory(graph, error) < 0)
        return -1;
    return graph->is_stage ? 0 : graph_plan_buckets(graph, error);
}

enum stored graph_stored_for(const struct device *device, enum precision precision)
{
    enum stored stored = precision == PRECISION_BFLOAT16  ? STORED_BFLOAT16
                         : precision == PRECISION_FLOAT16 ? STORED_FLOAT16
                                                          : STORED_FLOAT32;
    return device_stores(device, stored) ? stored : STORED_FLOAT32;
}

int graph_new(const struct graph_options *options, struct graph **ret_graph, struct error *error)
{
    struct graph *graph = memory_allocate(1, sizeof *graph);
    graph->device = options->device;
    graph->precision = options->precision;
    graph->max_examples = options->max_examples;
    graph->evaluation_only = options->evaluation_only;
    graph->layout_only = options->layout_only;
    graph->plan_only = options->plan_only;
    graph->keeps_outputs = options->keeps_outputs;
    graph->logit_rows = options->logit_rows;
    graph->recompute = options->recompute;
    graph->slots = 1;
    graph->stored = graph_stored_for(options->device, options->precision);
    graph->fuses_gelus = graph->stored != STORED_FLOAT32 && device_finishes_products(options->device);
    if (build(graph, options, error) < 0) {
        graph_free(graph);
        return -1;
    }
    *ret_graph = graph;
    return 0;
}

void graph_free(struct graph *graph)
{
    if (!graph)
        return;
    for (unsigned b = 0; b < graph->bucket_count; b++)
        device_event_free(graph->bucket_events[b]);
    device_free(graph->device, graph->arena);
    device_free(graph->device, graph->slot_arena);
    program_drop_kept(&graph->program_kept);
    free(graph->program_gradients);
    free(graph->program_outputs);
    free(graph->values);
    free(graph->gradients);
    free(graph->block_stays);
    free(graph->bucket_events);
    free(graph->bucket_layers);
    free(graph->buckets);
    free(graph->blocks);
    free(graph->written);
    free(graph->tensors);
    free(graph->nodes);
    free(graph);
}

const struct parameter_layout *graph_layout(const struct graph *graph)
{
    return &graph->layout;
}

const struct example_format *graph_example_format(const struct graph *graph)
{
    return &graph->format;
}

bool graph_has_global_statistics(const struct graph *graph)
{
    for (unsigned i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].layer.spec.statistics == STATISTICS_GLOBAL)
            return true;
    return false;
}

int64_t graph_max_examples(const struct graph *graph)
{
    return graph->max_examples;
}

enum precision graph_precision(const struct graph *graph)
{
    return graph->precision;
}

/* A product costs once in the forward pass and twice in the backward pass, or once if its input
 * needs no gradient. */
double graph_flops_per_example(const struct graph *graph)
{
    double flops = 0;
    for (unsigned i = 0; i < graph->node_count; i++) {
        const struct graph_node *node = &graph->nodes[i];
        if (!node->layer.kind->multiply_adds)
            continue;
        int owner = graph_output_owner(graph, node->inputs[0]);
        bool first = owner == MODEL_INPUT || !graph->nodes[owner].needs_gradient;
        flops += 2 * node->layer.kind->multiply_adds(&node->layer) * (first ? 2 : 3);
    }
    return flops;
}

int64_t graph_logit_rows(const struct graph *graph)
{
    return graph->logit_rows;
}

unsigned graph_bucket_count(const struct graph *graph)
{
    return graph->bucket_count;
}

struct graph_bucket graph_bucket(const struct graph *graph, unsigned index)
{
    return graph->buckets[index];
}

struct device_event *graph_bucket_event(const struct graph *graph, unsigned index)
{
    return graph->bucket_events[index];
}
