/* SPDX-License-Identifier: Apache-2.0 */
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
                            : snprintf(layer->name, sizeof layer->name, "%s%u", layer_default_name(spec->type), number);
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
    unsigned wanted = layer->kind->input_count;
    layer->input_count = spec->input_count ? spec->input_count : 1;
    if (wanted == LAYER_INPUTS_ANY && layer->input_count < 2)
        return error_set(error, ERROR_INVALID, "model.layers[%u] (%s): takes two inputs or more", number, layer->name);
    if (wanted != LAYER_INPUTS_ANY && layer->input_count != wanted)
        return error_set(error, ERROR_INVALID, "model.layers[%u] (%s): takes %u inputs, not %u", number, layer->name,
                         wanted, layer->input_count);
    for (unsigned i = 0; i < layer->input_count; i++) {
        node->inputs[i] = spec->input_count ? find_layer(graph, number, spec->inputs[i]) : (int)number - 1;
        if (node->slice.index > 0) /* as the first slice */
            node->inputs[i] = graph->nodes[number - 1].inputs[i];
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

/* Lets a dense layer borrow an embedding's table as its weight (weightsOf). */
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
        return error_set(
            error, ERROR_INVALID,
            "weightsOf: an earlier layer already uses the weights of %s, and only one may; remove weightsOf here",
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

static int resolve_layer(struct graph *graph, unsigned number, const struct layer_spec *spec,
                         const struct layer_slice *slice, struct error *error)
{
    struct graph_node *node = &graph->nodes[number];
    struct layer *layer = &node->layer;
    *node = (struct graph_node){.output = NO_BLOCK,
                                .repeated = NO_BLOCK,
                                .recomputed_kept = NO_BLOCK,
                                .gradient = NO_BLOCK,
                                .kept = NO_BLOCK,
                                .own = true,
                                .held = true,
                                .borrowed_gradient = NO_BLOCK,
                                .lent_gradient = NO_BLOCK,
                                .lender = NO_LAYER,
                                .fused_gelu = NO_LAYER,
                                .fused_norm = NO_LAYER,
                                .fused_sum = NO_LAYER,
                                .run_by = NO_LAYER,
                                .slice = {.place = number}};
    if (slice)
        node->slice = *slice;
    layer->kind = layer_kind_of(spec->type);
    layer->spec = *spec;
    if (name_layer(graph, number, spec, error) < 0 || connect_layer(graph, number, spec, error) < 0)
        return -1;
    if (layer->kind->resolve(layer, error) < 0 || borrow_tensor(graph, number, error) < 0)
        return error_wrap(error, "model.layers[%u] (%s)", number, layer->name);
    if (node->slice.count > 0)
        layer->parameters[0].fan_out = node->slice.whole;
    node->needs_gradient |= layer->parameter_count > 0;
    if (layer_shape_elements(&layer->output) > (int64_t)1 << 31)
        return error_set(error, ERROR_INVALID, "model.layers[%u] (%s): the output is too large", number, layer->name);
    return 0;
}

/* A rectifier right after a layer that can apply it needs no launch of its own if nothing else
 * reads that layer; on a GPU, the layer can apply its gradient too. Otherwise, if only one layer
 * reads the rectifier, that layer may return the gradient of the rectifier's input. */
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
            before->layer.masks_gradient =
                before->layer.kind->can_mask_gradient && device_finishes_products(graph->device);
            node->in_place = true;
            node->gradient_in_place = before->layer.masks_gradient;
        }
        if (before->layer.kind->type == LAYER_RELU && before->consumers == 1 && node->layer.kind->can_mask_input &&
            !before->gradient_in_place) {
            node->layer.input_is_relu = true;
            before->gradient_in_place = true;
        }
    }
}

/* On GPUs that finish products, a GELU right after a dense layer is part of its launch, and its
 * gradient is part of the launch of the dense layer that reads it. Not for float32 values: parts
 * of a model must have the bits of the whole model. Both layers are recomputed, or neither is
 * (graph_recompute.c). */
void graph_fuse_gelus(struct graph *graph)
{
    for (unsigned i = 0; i < graph->node_count && graph->fuses_gelus; i++) {
        struct graph_node *node = &graph->nodes[i];
        struct graph_node *before = node->inputs[0] == MODEL_INPUT ? NULL : &graph->nodes[node->inputs[0]];
        if (!before || !node->own || !before->own)
            continue;
        if (node->layer.kind->type == LAYER_GELU && before->layer.kind->can_fuse_gelu &&
            before->fused_gelu == NO_LAYER && node->recomputed == before->recomputed) {
            before->fused_gelu = (int)i;
            node->run_by = node->inputs[0];
        }
        if (before->layer.kind->type == LAYER_GELU && before->consumers == 1 && before->inputs[0] != MODEL_INPUT &&
            graph->nodes[before->inputs[0]].own && node->layer.kind->can_fuse_gelu)
            before->gradient_in_place = true;
    }
}

/* A layer norm is part of the launch of the residual sum before it, with the same bits. */
void graph_fuse_norms(struct graph *graph)
{
    for (unsigned i = 0; i < graph->node_count && device_finishes_products(graph->device); i++) {
        struct graph_node *node = &graph->nodes[i];
        struct graph_node *before = node->inputs[0] == MODEL_INPUT ? NULL : &graph->nodes[node->inputs[0]];
        if (node->layer.kind->type == LAYER_LAYER_NORM && before && before->layer.kind->type == LAYER_ADD &&
            before->layer.input_count == 2 && !before->layer.applies_relu && before->fused_norm == NO_LAYER &&
            node->own && before->own && node->recomputed == before->recomputed) {
            before->fused_norm = (int)i;
            node->run_by = node->inputs[0];
        }
    }
}

bool graph_is_sum_of_norm(const struct graph *graph, unsigned number)
{
    const struct graph_node *sum = &graph->nodes[number], *norm = &graph->nodes[number > 0 ? number - 1 : 0];
    return sum->layer.kind->type == LAYER_ADD && sum->layer.input_count == 2 && sum->fused_norm == NO_LAYER &&
           sum->own && norm->layer.kind->type == LAYER_BATCH_NORM && !norm->layer.applies_relu &&
           norm->consumers == 1 && (sum->inputs[0] == (int)number - 1 || sum->inputs[1] == (int)number - 1);
}

/* A sum of two is part of the launch of the batch norm right before it, with the same bits. Both
 * are recomputed, or neither is. */
void graph_fuse_sums(struct graph *graph)
{
    for (unsigned i = 1; i < graph->node_count && device_finishes_products(graph->device) && !graph->is_stage; i++) {
        if (!graph_is_sum_of_norm(graph, i) || graph->nodes[i].recomputed != graph->nodes[i - 1].recomputed)
            continue;
        graph->nodes[i - 1].fused_sum = (int)i;
        graph->nodes[i].run_by = (int)i - 1;
    }
}

int64_t graph_loss_rows(const struct graph *graph)
{
    const struct layer_shape *output = &graph->nodes[graph->node_count - 1].layer.output;
    return layer_shape_elements(output) / output->dims[output->rank - 1];
}

/* H W, or H W C. */
static void describe_image(const struct layer_shape *input, int64_t ret_image[3])
{
    for (unsigned i = 0; i < 3 && input->rank >= 2; i++)
        ret_image[i] = i < input->rank ? input->dims[i] : 1;
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
    describe_image(&graph->input, graph->format.image);
    graph->format.input_shape.rank = graph->input.rank;
    memcpy(graph->format.input_shape.dims, graph->input.dims, sizeof graph->input.dims);
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
        if (resolve_layer(graph, i, &description.layers[i], description.slices ? &description.slices[i] : NULL, error) <
            0)
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
