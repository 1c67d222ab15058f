/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/memory.h"
#include "common/scope.h"
#include "worker/model/graph_internal.h"

static int find_layer(const struct graph *graph, unsigned before, const char *name)
{
    for (unsigned i = 0; i < before; i++)
        if (strcmp(graph->nodes[i].layer.name, name) == 0)
            return (int)i;
    return NO_LAYER;
}

static int name_layer(struct graph *graph, unsigned number, const struct layer_spec *spec, struct error *error)
{
    struct layer *layer = &graph->nodes[number].layer;
    int length = spec->name ? snprintf(layer->name, sizeof layer->name, "%s", spec->name)
                            : snprintf(layer->name, sizeof layer->name, "%s%u", layer_type_name(spec->type), number);
    if (length >= (int)sizeof layer->name)
        return error_set(error, ERROR_INVALID, "model.layers[%u]: a name has at most %zu characters", number,
                         sizeof layer->name - 1);
    if (find_layer(graph, number, layer->name) >= 0)
        return error_set(error, ERROR_INVALID, "model.layers[%u]: two layers are called %s", number, layer->name);
    return 0;
}

static int connect_layer(struct graph *graph, unsigned number, const struct layer_spec *spec, struct error *error)
{
    struct graph_node *node = &graph->nodes[number];
    struct layer *layer = &node->layer;
    layer->input_count = spec->input_count ? spec->input_count : 1;
    if (layer->input_count != layer->kind->input_count)
        return error_set(error, ERROR_INVALID, "model.layers[%u] (%s): takes %u inputs, not %u", number, layer->name,
                         layer->kind->input_count, layer->input_count);
    for (unsigned i = 0; i < layer->input_count; i++) {
        node->inputs[i] = spec->input_count ? find_layer(graph, number, spec->inputs[i]) : (int)number - 1;
        if (node->inputs[i] < MODEL_INPUT)
            return error_set(error, ERROR_INVALID, "model.layers[%u] (%s): no earlier layer is called %s", number,
                             layer->name, spec->inputs[i]);
        bool from_input = node->inputs[i] == MODEL_INPUT;
        layer->reads_batch |= from_input;
        layer->inputs[i] = from_input ? graph->input : graph->nodes[node->inputs[i]].layer.output;
        if (!from_input) {
            graph->nodes[node->inputs[i]].consumers++;
            node->needs_gradient |= graph->nodes[node->inputs[i]].needs_gradient;
        }
    }
    return 0;
}

/* A dense layer may multiply by an embedding's table. */
static int borrow_tensor(struct graph *graph, unsigned number, struct error *error)
{
    struct graph_node *node = &graph->nodes[number];
    const struct layer *layer = &node->layer;
    if (!layer->spec.weights_of)
        return 0;
    int lender = find_layer(graph, number, layer->spec.weights_of);
    if (layer->kind->type != LAYER_DENSE || lender < 0 || graph->nodes[lender].layer.kind->type != LAYER_EMBEDDING)
        return error_set(error, ERROR_INVALID, "weightsOf: %s is not an embedding before this dense layer",
                         layer->spec.weights_of);
    struct graph_node *from = &graph->nodes[lender];
    const struct layer_parameter *weight = &from->layer.parameters[0];
    if (layer->spec.bias)
        return error_set(error, ERROR_INVALID, "weightsOf: such a layer has no bias; write bias: false");
    if (from->lends)
        return error_set(error, ERROR_INVALID, "weightsOf: another layer has the table of %s already",
                         layer->spec.weights_of);
    if (weight->shape[0] != layer->parameters[0].shape[0] || weight->shape[1] != layer->parameters[0].shape[1])
        return error_set(error, ERROR_INVALID,
                         "weightsOf: the table of %s is %lld x %lld, this layer needs %lld x %lld",
                         layer->spec.weights_of, (long long)weight->shape[0], (long long)weight->shape[1],
                         (long long)layer->parameters[0].shape[0], (long long)layer->parameters[0].shape[1]);
    node->lender = lender;
    from->lends = true;
    return 0;
}

static int resolve_layer(struct graph *graph, unsigned number, const struct layer_spec *spec, struct error *error)
{
    struct graph_node *node = &graph->nodes[number];
    struct layer *layer = &node->layer;
    *node = (struct graph_node){.output = NO_BLOCK,
                                .gradient = NO_BLOCK,
                                .kept = NO_BLOCK,
                                .own = true,
                                .held = true,
                                .borrowed_gradient = NO_BLOCK,
                                .lent_gradient = NO_BLOCK,
                                .lender = NO_LAYER};
    layer->kind = layer_kind_of(spec->type);
    layer->spec = *spec;
    if (name_layer(graph, number, spec, error) < 0 || connect_layer(graph, number, spec, error) < 0)
        return -1;
    if (layer->kind->resolve(layer, error) < 0 || borrow_tensor(graph, number, error) < 0)
        return error_wrap(error, "model.layers[%u] (%s)", number, layer->name);
    node->needs_gradient |= layer->parameter_count > 0;
    if (layer_shape_elements(&layer->output) > (int64_t)1 << 31)
        return error_set(error, ERROR_INVALID, "model.layers[%u] (%s): the output is too large", number, layer->name);
    return 0;
}

/* A rectifier right behind a layer that can apply it itself, and that nobody else reads, costs no launch. Where one
 * layer reads a rectifier, and can, it hands back the gradient of the rectifier's input. */
static void fuse_rectifiers(struct graph *graph)
{
    for (unsigned i = 0; i < graph->node_count; i++) {
        struct graph_node *node = &graph->nodes[i];
        node->in_place = node->layer.kind->type == LAYER_FLATTEN;
        node->gradient_in_place = node->in_place;
        if (node->inputs[0] == MODEL_INPUT)
            continue;
        struct graph_node *before = &graph->nodes[node->inputs[0]];
        if (node->layer.kind->type == LAYER_RELU && before->layer.kind->can_apply_relu && before->consumers == 1) {
            before->layer.applies_relu = true;
            node->in_place = true;
        }
        if (before->layer.kind->type == LAYER_RELU && before->consumers == 1 && node->layer.kind->can_mask_input) {
            node->layer.input_is_relu = true;
            before->gradient_in_place = true;
        }
    }
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

/* He et al. 2015 before a rectifier, else Glorot and Bengio 2010; GPT-2's rule (0.02, less on residual branches) in
 * models over tokens. */
static double deviation_of(const struct graph *graph, unsigned number, const struct layer_parameter *parameter)
{
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

static void lay_out_tensor(struct graph *graph, unsigned number, const struct layer_parameter *parameter,
                           unsigned number_in_model)
{
    struct parameter_tensor *tensor = &graph->tensors[graph->layout.tensor_count++];
    snprintf(tensor->name, sizeof tensor->name, "%s.%s", graph->nodes[number].layer.name, parameter->suffix);
    tensor->rank = parameter->rank;
    tensor->elements = 1;
    for (unsigned i = 0; i < parameter->rank; i++) {
        tensor->shape[i] = parameter->shape[i];
        tensor->elements *= parameter->shape[i];
    }
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

static void lay_out_layers(struct graph *graph, bool statistics, unsigned *number_in_model)
{
    for (unsigned i = 0; i < graph->node_count; i++) {
        struct graph_node *node = &graph->nodes[i];
        for (unsigned p = 0; p < node->layer.parameter_count; p++) {
            const struct layer_parameter *parameter = &node->layer.parameters[p];
            if (parameter->statistic != statistics)
                continue;
            node->tensors[p] = parameter->borrowed ? graph->nodes[node->lender].tensors[0] : graph->layout.tensor_count;
            if (!parameter->borrowed && node->held)
                lay_out_tensor(graph, i, parameter, *number_in_model);
            *number_in_model += !parameter->borrowed;
        }
    }
}

static unsigned number_of_table(const struct graph *graph, unsigned layer)
{
    unsigned number = 0;
    for (unsigned i = 0; i < graph->node_count; i++)
        for (unsigned p = 0; p < graph->nodes[i].layer.parameter_count; p++) {
            const struct layer_parameter *parameter = &graph->nodes[i].layer.parameters[p];
            bool earlier = parameter->statistic || i < layer;
            number += earlier && !parameter->borrowed;
        }
    return number;
}

/* A table that is borrowed here from a layer that is not held. */
static void lay_out_copies(struct graph *graph)
{
    for (unsigned i = 0; i < graph->node_count; i++) {
        struct graph_node *node = &graph->nodes[i];
        if (node->lender == NO_LAYER || !node->held || graph->nodes[node->lender].held)
            continue;
        unsigned lender = (unsigned)node->lender;
        node->tensors[0] = graph->nodes[lender].tensors[0] = graph->layout.tensor_count;
        lay_out_tensor(graph, lender, &graph->nodes[lender].layer.parameters[0], number_of_table(graph, lender));
        graph->tensors[node->tensors[0]].copy = true;
        graph->layout.copies += graph->tensors[node->tensors[0]].elements;
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
}

int64_t graph_loss_rows(const struct graph *graph)
{
    const struct layer_shape *output = &graph->nodes[graph->node_count - 1].layer.output;
    return layer_shape_elements(output) / output->dims[output->rank - 1];
}

static int describe_examples(struct graph *graph, const struct model_description *description, struct error *error)
{
    const struct layer_shape *output = &graph->nodes[graph->node_count - 1].layer.output;
    if (output->rank > 2)
        return error_set(error, ERROR_INVALID, "model: the last layer gives images; end with a dense layer");
    bool classes = description->loss == LOSS_SOFTMAX_CROSS_ENTROPY;
    graph->format = (struct example_format){
        .input_type = graph->input.integral ? ELEMENT_INT32 : ELEMENT_FLOAT32,
        .input_elements = layer_shape_elements(&graph->input),
        .target_type = classes ? ELEMENT_INT32 : ELEMENT_FLOAT32,
        .target_elements = classes ? graph_loss_rows(graph) : layer_shape_elements(output),
        .classes = classes ? output->dims[output->rank - 1] : 0,
    };
    return 0;
}

int graph_resolve_layers(struct graph *graph, const struct model_spec *spec, struct error *error)
{
    SCOPED(arena_release) struct arena arena = {0};
    struct model_description description;
    if (model_description_from(spec, &arena, &description, error) < 0)
        return -1;
    graph->input = description.input;
    graph->loss = description.loss;
    graph->node_count = description.layer_count;
    graph->nodes = memory_allocate(description.layer_count, sizeof *graph->nodes);
    for (unsigned i = 0; i < description.layer_count; i++)
        if (resolve_layer(graph, i, &description.layers[i], error) < 0)
            return -1;
    for (unsigned i = 0; i + 1 < graph->node_count; i++)
        if (graph->nodes[i].consumers == 0)
            return error_set(error, ERROR_INVALID, "model.layers[%u] (%s): nothing reads its output", i,
                             graph->nodes[i].layer.name);
    if (!graph->nodes[graph->node_count - 1].needs_gradient)
        return error_set(error, ERROR_INVALID, "model: there is nothing to learn; add a layer with parameters");
    fuse_rectifiers(graph);
    return describe_examples(graph, &description, error);
}
