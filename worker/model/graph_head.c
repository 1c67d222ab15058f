/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the last dense layer and the softmax cross-entropy some rows at a time: their logits,
 * their loss, the gradient in the logits' place, and what it adds to the gradients of weight and
 * input; then the next rows in the same memory (as in Hsu et al. 2024). For a wide vocabulary,
 * whose logits would need more memory than everything else that a pass keeps.
 *
 * The number of rows depends on the layer's shape alone, so that a shard has the same bits on
 * every worker and in every plan. A pass of that many rows or fewer has the bits of a pass that
 * holds all logits.
 */
#include <stddef.h>

#include "worker/model/graph_internal.h"

/* The most logits to hold at a time. */
#define LOGITS_AT_ONCE ((int64_t)1 << 25)
/* The fewest rows of a part: each part reads and writes the whole gradient of the weight. */
#define ROWS_MIN 2048

static int64_t width_of(const struct layer *layer)
{
    return layer->inputs[0].dims[layer->inputs[0].rank - 1];
}

/* Returns the rows of a part: at least twice the layer's inputs, because otherwise the separate
 * gradient of an accumulating pass would be larger than the logits that are saved. */
static int64_t rows_at_once(const struct layer *layer)
{
    int64_t rows = ROWS_MIN;
    while (rows < 2 * width_of(layer) || rows * 2 * layer->spec.units <= LOGITS_AT_ONCE)
        rows *= 2;
    return rows;
}

/* Products are fastest on GPUs if rows begin at multiples of 16 bytes. */
#define ROW_BYTES 16

static int64_t row_of(const struct graph *graph, int64_t classes)
{
    const int64_t values = ROW_BYTES / stored_bytes(graph->stored);
    return device_memory_is_shared(graph->device) ? classes : (classes + values - 1) / values * values;
}

void graph_plan_head(struct graph *graph)
{
    const struct graph_node *node = &graph->nodes[graph->node_count - 1];
    const struct layer *layer = &node->layer;
    int64_t most = graph->max_examples * graph_loss_rows(graph);
    if (graph->loss != LOSS_SOFTMAX_CROSS_ENTROPY || layer->kind != &layer_dense || !node->own || graph->keeps_outputs)
        return;
    int64_t rows = graph->logit_rows > 0 ? graph->logit_rows : rows_at_once(layer);
    bool are_many = graph->logit_rows == 0 && most > LOGITS_AT_ONCE / layer->spec.units;
    if (most <= rows && !are_many)
        return;
    graph->head_rows = rows < most ? rows : most;
    graph->head = *layer;
    graph->head.inputs[0] = (struct layer_shape){.dims = {width_of(layer)}, .rank = 1};
    graph->head.output = (struct layer_shape){.dims = {layer->spec.units}, .rank = 1};
    graph->head_row = row_of(graph, layer->spec.units);
}

/* Returns the call for the rows from `first` on, as examples of one row each. */
static struct layer_call part_of(const struct graph_run *run, const struct layer_call *call, int64_t first)
{
    const struct graph *graph = run->graph;
    int64_t left = call->n * graph_loss_rows(graph) - first, place = first * width_of(&graph->head);
    struct layer_call part = *call;
    part.layer = &graph->head;
    part.n = left < graph->head_rows ? left : graph->head_rows;
    part.x[0] = layer_values(call, call->x[0], place);
    part.dy = part.y;
    part.y_row = graph->head_row;
    if (call->gelu_input)
        part.gelu_input = layer_values(call, call->gelu_input, place);
    if (call->dx)
        part.dx = layer_values(call, call->dx, place);
    return part;
}

static void run_logits(const struct graph_run *run, const struct layer_call *part)
{
    part->layer->kind->forward(part);
    graph_run_round(run, part->y, part->n * run->graph->head_row);
}

static void run_loss(const struct graph_run *run, const struct layer_call *part, int64_t first, bool is_last)
{
    const struct graph *graph = run->graph;
    double *workspace = graph_block_memory(graph, graph->loss_workspace, run->slot);
    device_softmax_cross_entropy_stored(
        run->stream, graph->stored,
        &(struct softmax_cross_entropy){.rows = part->n,
                                        .classes = graph->format.classes,
                                        .logits = part->y,
                                        .targets = (const int32_t *)run->targets + first,
                                        .scale = graph_run_loss_scale(run),
                                        .values = run->pass->values,
                                        .dlogits = run->evaluation ? NULL : part->y,
                                        .workspace = workspace + 2 * first,
                                        .sums = is_last ? run->pass->sums : NULL,
                                        .earlier = first,
                                        .row = graph->head_row});
    if (!run->evaluation)
        graph_run_round(run, part->y, part->n * graph->head_row);
}

static void run_part(const struct graph_run *run, const struct layer_call *part, int64_t first, bool is_last)
{
    run_logits(run, part);
    run_loss(run, part, first, is_last);
    if (run->evaluation)
        return;
    part->layer->kind->backward_parameters(part);
    if (!part->dx)
        return;
    part->layer->kind->backward_input(part);
    graph_run_round(run, part->dx, part->n * width_of(part->layer));
}

/* Runs all parts. Without examples there is one part of 0 rows, which sets the gradients to
 * zero. */
static void run_parts(const struct graph_run *run, const struct layer_call *call)
{
    int64_t rows = call->n * graph_loss_rows(run->graph), step = run->graph->head_rows;
    for (int64_t first = 0; first == 0 || first < rows; first += step) {
        struct layer_call part = part_of(run, call, first);
        part.accumulate |= first > 0;
        run_part(run, &part, first, first + step >= rows);
    }
}

void graph_head_evaluate(const struct graph_run *run)
{
    struct layer_call call = graph_run_prepare(run, run->graph->node_count - 1);
    run_parts(run, &call);
}

/* Computes the gradients separately and then adds them: like all layers, the head adds only
 * finished gradients to those of other passes. */
static void run_apart(const struct graph_run *run, const struct layer_call *call)
{
    struct layer_call apart = *call;
    float *place = graph_block_memory(run->graph, run->graph->head_gradient, run->slot);
    apart.accumulate = false;
    for (unsigned p = 0; p < call->layer->parameter_count; p++) {
        apart.gradients[p] = place;
        place += layer_parameter_elements(&call->layer->parameters[p]);
    }
    run_parts(run, &apart);
    for (unsigned p = 0; p < call->layer->parameter_count; p++)
        device_axpy(run->stream, &(struct axpy){layer_parameter_elements(&call->layer->parameters[p]), 1.0f,
                                                apart.gradients[p], call->gradients[p]});
}

void graph_head_backward(const struct graph_run *run, const struct layer_call *call)
{
    if (call->accumulate && call->n * graph_loss_rows(run->graph) > run->graph->head_rows)
        run_apart(run, call);
    else
        run_parts(run, call);
}
