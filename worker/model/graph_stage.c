/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/model/graph_stage.h"

#include <string.h>

#include "common/memory.h"
#include "worker/model/graph_internal.h"
#include "worker/model/partition.h"

/* ---- what crosses */

static void add_crossing(struct graph_crossing *list, unsigned *count, struct graph_crossing crossing)
{
    for (unsigned i = 0; i < *count; i++)
        if (list[i].layer == crossing.layer && list[i].from == crossing.from && list[i].to == crossing.to)
            return;
    list[(*count)++] = crossing;
}

static void find_values(struct graph *graph, const unsigned *part_of)
{
    for (unsigned i = 0; i < graph->node_count; i++)
        for (unsigned k = 0; k < graph->nodes[i].layer.input_count; k++) {
            int owner = graph_output_owner(graph, graph->nodes[i].inputs[k]);
            if (owner != MODEL_INPUT && part_of[owner] != part_of[i])
                add_crossing(
                    graph->values, &graph->value_count,
                    (struct graph_crossing){.layer = (unsigned)owner,
                                            .from = part_of[owner],
                                            .to = part_of[i],
                                            .elements = layer_shape_elements(&graph->nodes[owner].layer.output),
                                            .stored = graph->stored});
        }
}

/* Lists gradients from the last reader to the first, the order in which one device adds them. */
static void find_gradients(struct graph *graph, const unsigned *part_of)
{
    for (unsigned i = graph->node_count; i-- > 0;)
        for (unsigned k = 0; k < graph->nodes[i].layer.input_count; k++) {
            int before = graph->nodes[i].inputs[k];
            if (before != MODEL_INPUT && part_of[before] != part_of[i] && graph->nodes[before].needs_gradient)
                add_crossing(
                    graph->gradients, &graph->gradient_count,
                    (struct graph_crossing){.layer = (unsigned)before,
                                            .from = part_of[i],
                                            .to = part_of[before],
                                            .elements = layer_shape_elements(&graph->nodes[before].layer.output),
                                            .stored = graph->stored});
        }
}

/* Lists the gradients of tables that a layer borrows from another part. */
static void find_tables(struct graph *graph, const unsigned *part_of)
{
    for (unsigned i = 0; i < graph->node_count; i++) {
        int lender = graph->nodes[i].lender;
        if (lender == NO_LAYER || part_of[lender] == part_of[i])
            continue;
        const struct layer_parameter *table = &graph->nodes[lender].layer.parameters[0];
        graph->gradients[graph->gradient_count++] =
            (struct graph_crossing){.layer = (unsigned)lender,
                                    .from = part_of[i],
                                    .to = part_of[lender],
                                    .elements = table->shape[0] * table->shape[1],
                                    .table = true,
                                    .stored = STORED_FLOAT32};
    }
}

int graph_take_stage(struct graph *graph, const struct graph_options *options, struct error *error)
{
    const struct graph_partition *partition = options->partition;
    if (partition->layers != graph->node_count || options->part >= partition->parts || options->slots < 1)
        return error_set(error, ERROR_INTERNAL, "internal error: a partition of %u layers for a model of %u",
                         partition->layers, graph->node_count);
    graph->is_stage = true;
    graph->part = options->part;
    graph->slots = options->slots;
    for (unsigned i = 0; i < graph->node_count; i++) {
        graph->nodes[i].own = partition->part_of[i] == options->part;
        graph->nodes[i].held = options->held == NULL || options->held[partition->stage_of[i]];
    }
    size_t most = (size_t)graph->node_count * (LAYER_INPUTS_MAX + 1);
    graph->values = memory_allocate(most, sizeof *graph->values);
    graph->gradients = memory_allocate(most, sizeof *graph->gradients);
    find_values(graph, partition->part_of);
    find_gradients(graph, partition->part_of);
    find_tables(graph, partition->part_of);
    return 0;
}

const struct graph_crossing *graph_values(const struct graph *graph, unsigned *ret_count)
{
    *ret_count = graph->value_count;
    return graph->values;
}

const struct graph_crossing *graph_gradients(const struct graph *graph, unsigned *ret_count)
{
    *ret_count = graph->gradient_count;
    return graph->gradients;
}

const void *graph_value_out(const struct graph *graph, unsigned value, unsigned slot)
{
    return graph_block_memory(graph, graph->nodes[graph->values[value].layer].output, slot);
}

const void *graph_gradient_out(const struct graph *graph, unsigned gradient, unsigned slot)
{
    const struct graph_crossing *crossing = &graph->gradients[gradient];
    const struct graph_node *node = &graph->nodes[crossing->layer];
    return graph_block_memory(graph, crossing->table ? node->lent_gradient : node->gradient, slot);
}

bool graph_stage_reads_inputs(const struct graph *graph)
{
    for (unsigned i = 0; i < graph->node_count; i++)
        for (unsigned k = 0; k < graph->nodes[i].layer.input_count; k++)
            if (graph->nodes[i].own && graph_output_owner(graph, graph->nodes[i].inputs[k]) == MODEL_INPUT)
                return true;
    return false;
}

bool graph_stage_has_loss(const struct graph *graph)
{
    return graph->nodes[graph->node_count - 1].own;
}

unsigned graph_stage_ranges(const struct graph *graph, struct graph_bucket *ret_ranges)
{
    unsigned count = 0;
    int64_t end = -1;
    for (unsigned i = 0; i < graph->node_count; i++)
        for (unsigned p = 0; graph->nodes[i].own && p < graph->nodes[i].layer.parameter_count; p++) {
            const struct graph_node *node = &graph->nodes[i];
            if (node->layer.parameters[p].borrowed)
                continue;
            int64_t offset = graph->tensors[node->tensors[p]].offset + node->shift[p];
            int64_t elements = layer_parameter_elements(&node->layer.parameters[p]);
            if (offset != end)
                count++;
            if (ret_ranges && offset != end)
                ret_ranges[count - 1] = (struct graph_bucket){.offset = offset};
            if (ret_ranges)
                ret_ranges[count - 1].elements += elements;
            end = offset + elements;
        }
    return count;
}

/* ---- passes */

static void take_values(const struct graph_run *run, const struct graph_stage_pass *pass)
{
    const struct graph *graph = run->graph;
    for (unsigned i = 0; i < graph->value_count; i++) {
        const struct graph_crossing *value = &graph->values[i];
        if (value->to == graph->part)
            device_copy(run->stream,
                        &(struct copy){pass->pass.examples * value->elements * stored_bytes(value->stored),
                                       pass->values[i],
                                       graph_block_memory(graph, graph->nodes[value->layer].output, run->slot)});
    }
}

/* Copies the borrower's gradient of a table to where the lender's backward pass reads it
 * (lend_gradient). */
static void take_table(const struct graph_run *run, const struct graph_crossing *crossing, const void *from)
{
    const struct graph *graph = run->graph;
    const struct graph_node *lender = &graph->nodes[crossing->layer];
    float *target = run->pass->accumulate ? graph_block_memory(graph, lender->borrowed_gradient, run->slot)
                                          : run->pass->gradients + graph->tensors[lender->tensors[0]].offset;
    device_copy(run->stream, &(struct copy){crossing->elements * (int64_t)sizeof(float), from, target});
}

bool graph_stage_adds_gradient(const struct graph *graph, unsigned gradient)
{
    const struct graph_crossing *own = &graph->gradients[gradient];
    for (unsigned i = 0; i < gradient && !own->table; i++) {
        const struct graph_crossing *before = &graph->gradients[i];
        if (!before->table && before->to == own->to && before->layer == own->layer)
            return true;
    }
    return false;
}

/* Takes gradients as hand_to_input does inside one graph: the first is copied, the others are
 * added. */
static void take_gradients(const struct graph_run *run, const struct graph_stage_pass *pass)
{
    struct graph *graph = run->graph;
    for (unsigned i = 0; i < graph->gradient_count; i++) {
        const struct graph_crossing *gradient = &graph->gradients[i];
        if (gradient->to == graph->part && gradient->table)
            take_table(run, gradient, pass->gradients[i]);
        if (gradient->to != graph->part || gradient->table)
            continue;
        int64_t count = pass->pass.examples * gradient->elements;
        float *target = graph_block_memory(graph, graph->nodes[gradient->layer].gradient, run->slot);
        if (graph->written[gradient->layer])
            device_axpy_stored(run->stream, gradient->stored, &(struct axpy){count, 1.0f, pass->gradients[i], target});
        else
            device_copy(run->stream,
                        &(struct copy){count * stored_bytes(gradient->stored), pass->gradients[i], target});
        if (graph->written[gradient->layer])
            graph_run_round(run, target, count);
        graph->written[gradient->layer] = true;
    }
}

static int begin(struct graph *graph, struct device_stream *stream, const struct graph_stage_pass *pass,
                 bool evaluation, struct graph_run *ret_run, struct error *error)
{
    if (graph_check_pass(graph, &pass->pass, error) < 0)
        return -1;
    if (!graph->is_stage || graph->evaluation_only || pass->slot >= graph->slots)
        return error_set(error, ERROR_INTERNAL, "internal error: this graph was not planned for slot %u of a stage",
                         pass->slot);
    *ret_run = (struct graph_run){
        .graph = graph, .stream = stream, .pass = &pass->pass, .slot = pass->slot, .evaluation = evaluation};
    graph_run_begin(ret_run);
    return 0;
}

/* A stage that recomputes, and has the loss, skips its forward pass: the backward pass follows
 * at once. */
static bool defers(const struct graph *graph)
{
    return graph->recompute && graph_stage_has_loss(graph);
}

int graph_stage_forward(struct graph *graph, struct device_stream *stream, const struct graph_stage_pass *pass,
                        struct error *error)
{
    struct graph_run run;
    if (begin(graph, stream, pass, false, &run, error) < 0)
        return -1;
    take_values(&run, pass);
    if (!defers(graph))
        graph_run_forward(&run);
    return 0;
}

int graph_stage_backward(struct graph *graph, struct device_stream *stream, const struct graph_stage_pass *pass,
                         struct error *error)
{
    struct graph_run run;
    if (begin(graph, stream, pass, false, &run, error) < 0)
        return -1;
    if (graph->recompute)
        graph_run_forward(&run);
    memset(graph->written, 0, graph->node_count * sizeof *graph->written);
    if (graph_stage_has_loss(graph)) {
        int gradient = graph->nodes[graph->node_count - 1].gradient;
        graph_run_loss(&run, graph_block_memory(graph, gradient, run.slot));
    }
    take_gradients(&run, pass);
    graph_run_backward(&run);
    return 0;
}

int graph_stage_evaluate(struct graph *graph, struct device_stream *stream, const struct graph_stage_pass *pass,
                         struct error *error)
{
    struct graph_run run;
    if (begin(graph, stream, pass, true, &run, error) < 0)
        return -1;
    take_values(&run, pass);
    graph_run_forward(&run);
    if (graph_stage_has_loss(graph))
        graph_run_loss(&run, NULL);
    return 0;
}
