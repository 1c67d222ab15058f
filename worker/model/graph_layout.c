/* SPDX-License-Identifier: Apache-2.0
 *
 * Places the parameters of the layers that a graph holds in the layout, and sets their initial
 * values.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/memory.h"
#include "worker/model/graph_internal.h"
#include "worker/model/graph_program.h"

/* Returns the number of the layer that concatenates the slices of this one. */
static unsigned graph_whole_layer(const struct graph *graph, unsigned number)
{
    const struct layer_slice *slice = &graph->nodes[number].slice;
    return number + slice->count - slice->index;
}

static bool feeds_add(const struct graph *graph, unsigned number)
{
    for (unsigned i = number + 1; i < graph->node_count; i++)
        if (graph->nodes[i].layer.kind->type == LAYER_ADD && graph->nodes[i].inputs[1] == (int)number)
            return true;
    return false;
}

static bool feeds_rectifier(const struct graph *graph, unsigned number)
{
    if (number + 1 == graph->node_count || graph->nodes[number + 1].inputs[0] != (int)number)
        return false;
    enum layer_type next = graph->nodes[number + 1].layer.kind->type;
    return next == LAYER_RELU || next == LAYER_GELU || next == LAYER_BATCH_NORM;
}

/* Returns the standard deviation of initial weights: He et al. 2015 before a rectifier, else
 * Glorot and Bengio 2010; in models over tokens GPT-2's rule (0.02, less on residual branches). */
static double deviation_of(const struct graph *graph, unsigned number, const struct layer_parameter *parameter)
{
    number = graph_whole_layer(graph, number);
    if (graph->input.integral) {
        unsigned adds = 0;
        for (unsigned i = 0; i < graph->node_count; i++)
            adds += graph->nodes[i].layer.kind->type == LAYER_ADD;
        return feeds_add(graph, number) ? 0.02 / sqrt((double)adds) : 0.02;
    }
    if (feeds_rectifier(graph, number))
        return sqrt(2.0 / (double)parameter->fan_in);
    return sqrt(2.0 / (double)(parameter->fan_in + parameter->fan_out));
}

/* `count` rows of a tensor of `whole` rows. */
struct rows {
    int64_t first, count, whole;
};

static void lay_out_tensor(struct graph *graph, unsigned number, const struct layer_parameter *parameter,
                           struct rows rows, unsigned number_in_model)
{
    struct parameter_tensor *tensor = &graph->tensors[graph->layout.tensor_count++];
    const char *name = graph->nodes[graph_whole_layer(graph, number)].layer.name;
    snprintf(tensor->name, sizeof tensor->name, "%s.%s", name, parameter->suffix);
    tensor->rank = parameter->rank;
    memcpy(tensor->shape, parameter->shape, sizeof parameter->shape);
    tensor->shape[0] = rows.count;
    tensor->elements = 1;
    for (unsigned i = 0; i < parameter->rank; i++)
        tensor->elements *= tensor->shape[i];
    tensor->first_row = rows.first;
    tensor->whole_rows = rows.whole;
    tensor->layer = number;
    tensor->number = number_in_model;
    tensor->offset = graph->layout.elements;
    tensor->start = parameter->start;
    const struct graph_node *node = &graph->nodes[number];
    tensor->by_rows =
        node->layer.kind->type == LAYER_EMBEDDING && parameter == &node->layer.parameters[0] && !node->lends;
    if (parameter->start == START_NORMAL)
        tensor->deviation = (float)deviation_of(graph, number, parameter);
    graph->layout.elements += tensor->elements;
}

static void lay_out_whole(struct graph *graph, unsigned number, const struct layer_parameter *parameter,
                          unsigned number_in_model)
{
    const struct layer_slice *slice = &graph->nodes[number].slice;
    int64_t rows = slice->count ? slice->whole : parameter->shape[0];
    lay_out_tensor(graph, number, parameter, (struct rows){0, rows, rows}, number_in_model);
}

/* Places a parameter of a split layer: one tensor if all slices are held, else one for each held
 * slice. */
static void lay_out_slices(struct graph *graph, unsigned first, unsigned p, unsigned number_in_model)
{
    unsigned count = graph->nodes[first].slice.count;
    bool all = true;
    for (unsigned i = first; i < first + count; i++)
        all &= graph->nodes[i].held;
    if (all)
        lay_out_whole(graph, first, &graph->nodes[first].layer.parameters[p], number_in_model);
    for (unsigned i = first; i < first + count; i++) {
        struct graph_node *node = &graph->nodes[i];
        const struct layer_parameter *parameter = &node->layer.parameters[p];
        struct rows rows = {node->slice.first, parameter->shape[0], node->slice.whole};
        int64_t row_elements = parameter->rank > 1 ? parameter->shape[1] : 1;
        if (!all && node->held)
            lay_out_tensor(graph, i, parameter, rows, number_in_model);
        node->tensors[p] = graph->layout.tensor_count - 1;
        node->shift[p] = all ? node->slice.first * row_elements : 0;
    }
}

static void lay_out_parameter(struct graph *graph, unsigned number, unsigned p, unsigned *number_in_model)
{
    struct graph_node *node = &graph->nodes[number];
    const struct layer_parameter *parameter = &node->layer.parameters[p];
    if (node->slice.index > 0) /* the first slice has placed it */
        return;
    if (parameter->borrowed) {
        node->tensors[p] = graph->nodes[node->lender].tensors[0];
        return;
    }
    node->tensors[p] = graph->layout.tensor_count;
    if (node->slice.count > 0)
        lay_out_slices(graph, number, p, *number_in_model);
    else if (node->held)
        lay_out_whole(graph, number, parameter, *number_in_model);
    ++*number_in_model;
}

static void lay_out_layers(struct graph *graph, bool statistics, unsigned *number_in_model)
{
    for (unsigned i = 0; i < graph->node_count; i++)
        for (unsigned p = 0; p < graph->nodes[i].layer.parameter_count; p++)
            if (graph->nodes[i].layer.parameters[p].statistic == statistics)
                lay_out_parameter(graph, i, p, number_in_model);
}

static unsigned number_of_table(const struct graph *graph, unsigned layer)
{
    unsigned number = 0;
    for (unsigned i = 0; i < graph->node_count; i++)
        for (unsigned p = 0; p < graph->nodes[i].layer.parameter_count; p++) {
            const struct layer_parameter *parameter = &graph->nodes[i].layer.parameters[p];
            bool earlier = parameter->statistic || i < layer;
            number += earlier && !parameter->borrowed && graph->nodes[i].slice.index == 0;
        }
    return number;
}

/* Places copies of tables that a layer here borrows from a layer that is not held. */
static void lay_out_copies(struct graph *graph)
{
    for (unsigned i = 0; i < graph->node_count; i++) {
        struct graph_node *node = &graph->nodes[i];
        if (node->lender == NO_LAYER || !node->held || graph->nodes[node->lender].held)
            continue;
        unsigned lender = (unsigned)node->lender;
        node->tensors[0] = graph->nodes[lender].tensors[0] = graph->layout.tensor_count;
        lay_out_whole(graph, lender, &graph->nodes[lender].layer.parameters[0], number_of_table(graph, lender));
        graph->tensors[node->tensors[0]].copy = true;
        graph->layout.copies += graph->tensors[node->tensors[0]].elements;
    }
}

/* Returns the elements of a parameter with all its slices; 0: it is counted elsewhere. */
static int64_t elements_in_model(const struct graph_node *node, const struct layer_parameter *parameter)
{
    if (parameter->borrowed || node->slice.index > 0)
        return 0;
    int64_t elements = node->slice.count ? node->slice.whole : parameter->shape[0];
    for (unsigned i = 1; i < parameter->rank; i++)
        elements *= parameter->shape[i];
    return elements;
}

static int64_t row_elements_of(const struct parameter_tensor *tensor)
{
    return tensor->shape[0] > 0 ? tensor->elements / tensor->shape[0] : 0;
}

static void place_tensors(struct graph *graph, unsigned number_in_model, int64_t place)
{
    for (unsigned t = 0; t < graph->layout.tensor_count; t++)
        if (graph->tensors[t].number == number_in_model)
            graph->tensors[t].place = place + graph->tensors[t].first_row * row_elements_of(&graph->tensors[t]);
}

/* Sets each tensor's place in the whole model, in the order of lay_out_layers, whatever is held. */
static void find_places(struct graph *graph)
{
    unsigned number = 0;
    int64_t place = 0;
    for (int trained = 0; trained <= 1; trained++)
        for (unsigned i = 0; i < graph->node_count; i++)
            for (unsigned p = 0; p < graph->nodes[i].layer.parameter_count; p++) {
                const struct layer_parameter *parameter = &graph->nodes[i].layer.parameters[p];
                int64_t elements = elements_in_model(&graph->nodes[i], parameter);
                if (parameter->statistic == (trained != 0) || elements == 0)
                    continue;
                place_tensors(graph, number++, place);
                place += elements;
            }
}

/* Running statistics, then what is trained, each in the order of the layers; copies last. */
void graph_lay_out_parameters(struct graph *graph)
{
    unsigned number_in_model = 0;
    graph->tensors = memory_allocate(graph->node_count * LAYER_PARAMETERS_MAX, sizeof *graph->tensors);
    graph->layout.tensors = graph->tensors;
    lay_out_layers(graph, true, &number_in_model);
    graph->layout.statistics = graph->layout.elements;
    lay_out_layers(graph, false, &number_in_model);
    lay_out_copies(graph);
    find_places(graph);
}

unsigned graph_parameter_pieces(const struct graph *graph, struct parameter_piece *ret_pieces)
{
    unsigned count = 0;
    if (graph->program != NULL)
        return graph_program_pieces(graph, ret_pieces);
    for (unsigned t = 0; t < graph->layout.tensor_count; t++) {
        const struct parameter_tensor *tensor = &graph->tensors[t];
        int64_t row = row_elements_of(tensor);
        unsigned slices = graph->nodes[tensor->layer].slice.count;
        for (unsigned k = 0; k < (slices ? slices : 1); k++, count++) {
            const struct layer_slice *slice = &graph->nodes[tensor->layer + k].slice;
            int64_t first = slices ? slice->first : 0, rows = slices ? slice->rows : tensor->shape[0];
            if (ret_pieces)
                ret_pieces[count] = (struct parameter_piece){.offset = tensor->offset + first * row,
                                                             .elements = rows * row,
                                                             .layer = tensor->layer + k,
                                                             .number = tensor->number,
                                                             .first_row = first,
                                                             .skipped = first * row};
        }
    }
    return count;
}

int64_t parameter_piece_place(const struct parameter_piece *piece, const struct parameter_layout *layout)
{
    for (unsigned t = 0; t < layout->tensor_count; t++) {
        const struct parameter_tensor *tensor = &layout->tensors[t];
        if (tensor->number != piece->number || tensor->copy)
            continue;
        if (tensor->shape[0] == tensor->whole_rows)
            return tensor->offset + piece->skipped;
        if (tensor->first_row == piece->first_row)
            return tensor->offset;
    }
    return -1;
}
