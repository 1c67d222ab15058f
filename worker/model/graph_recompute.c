/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides which layers of a whole model are recomputed in the backward pass, so that less is kept
 * (Chen et al. 2016). A segment is the layers between two residual sums; later layers read only
 * the second sum, and nothing before it. Of a segment only its sum is kept. When the backward pass
 * reaches the segment, the outputs that its layers read are computed again, from the same numbers
 * to the same bits. Layers after the last sum are kept: their backward pass follows at once.
 */
#include "worker/model/graph_internal.h"

/* Returns whether the later layers read, among this layer and those before it, only this one.
 * The batch is always available. */
static bool is_bottleneck(const struct graph *graph, unsigned number)
{
    for (unsigned i = number + 1; i < graph->node_count; i++)
        for (unsigned k = 0; k < graph->nodes[i].layer.input_count; k++) {
            int owner = graph_output_owner(graph, graph->nodes[i].inputs[k]);
            if (owner != MODEL_INPUT && owner < (int)number)
                return false;
        }
    return true;
}

static bool ends_segment(const struct graph *graph, unsigned number)
{
    const struct graph_node *node = &graph->nodes[number];
    return node->layer.kind->type == LAYER_ADD && node->needs_gradient && number + 1 < graph->node_count &&
           is_bottleneck(graph, number);
}

/* Returns whether the backward pass, or a recomputed layer, reads this layer's output. The
 * layers after it are already marked. */
static bool is_wanted(const struct graph *graph, unsigned number, unsigned end)
{
    const struct layer *layer = &graph->nodes[number].layer;
    if (layer->kind->kept || !layer->kind->forgets_output || layer->applies_relu)
        return true;
    for (unsigned i = number + 1; i <= end; i++) {
        bool reads = graph->nodes[i].recomputed || !graph->nodes[i].layer.kind->forgets_input;
        for (unsigned k = 0; reads && k < graph->nodes[i].layer.input_count; k++)
            if (graph_output_owner(graph, graph->nodes[i].inputs[k]) == (int)number)
                return true;
    }
    return false;
}

/* A GELU that a dense layer's launch computes too: a separate launch may give other bits
 * (graph_fuse_gelus). */
static bool is_fused(const struct graph *graph, unsigned number)
{
    const struct graph_node *node = &graph->nodes[number];
    return graph->fuses_gelus && node->layer.kind->type == LAYER_GELU && node->inputs[0] != MODEL_INPUT &&
           graph->nodes[node->inputs[0]].layer.kind->can_fuse_gelu;
}

static void mark_segment(struct graph *graph, unsigned begin, unsigned end)
{
    for (unsigned i = end; i-- > begin;) {
        graph->nodes[i].segment_end = end;
        graph->nodes[i].recomputed = !graph->nodes[i].in_place && (is_fused(graph, i) || is_wanted(graph, i, end));
    }
}

int graph_plan_recompute(struct graph *graph, struct error *error)
{
    unsigned begin = 0;
    if (!graph->recompute || graph->is_stage || graph->evaluation_only)
        return 0;
    if (graph_has_global_statistics(graph))
        return error_set(error, ERROR_INVALID,
                         "strategy.recompute: the layers that share statistics: Global cannot run again for one shard "
                         "alone; leave it out or take statistics: Shard");
    for (unsigned i = 0; i < graph->node_count; i++)
        if (ends_segment(graph, i)) {
            mark_segment(graph, begin, i);
            begin = i + 1;
        }
    if (begin == 0)
        return error_set(error, ERROR_INVALID,
                         "strategy.recompute: the model has no residual sums (layers of type add) between which to "
                         "compute again; leave it out");
    return 0;
}

void graph_run_recomputed(const struct graph_run *run, unsigned end)
{
    for (unsigned i = 0; i < end; i++)
        if (run->graph->nodes[i].recomputed && run->graph->nodes[i].run_by == NO_LAYER &&
            run->graph->nodes[i].segment_end == end)
            graph_run_layer(run, i);
}
