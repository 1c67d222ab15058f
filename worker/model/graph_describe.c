/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/model/graph_describe.h"

#include "worker/model/graph_internal.h"

static int64_t own_parameters(const struct layer *layer)
{
    int64_t elements = 0;
    for (unsigned i = 0; i < layer->parameter_count; i++)
        elements += layer->parameters[i].borrowed ? 0 : layer_parameter_elements(&layer->parameters[i]);
    return elements;
}

static struct json *describe_layer(const struct graph_node *node)
{
    char shape[LAYER_SHAPE_TEXT_MAX];
    struct json *layer = json_new_object();
    layer_shape_print(&node->layer.output, shape);
    json_set_string(layer, "name", node->layer.name);
    json_set_string(layer, "type", layer_type_name(node->layer.kind->type));
    struct json *inputs = json_set_array(layer, "inputs");
    for (unsigned i = 0; i < node->layer.input_count; i++)
        json_append(inputs, json_new_integer(node->inputs[i]));
    json_set_string(layer, "output", shape);
    json_set_integer(layer, "parameters", own_parameters(&node->layer));
    return layer;
}

struct json *graph_describe(const struct graph *graph)
{
    char shape[LAYER_SHAPE_TEXT_MAX];
    struct json *model = json_new_object();
    layer_shape_print(&graph->input, shape);
    json_set_string(model, "input", shape);
    json_set_integer(model, "parameters", graph->layout.elements);
    struct json *layers = json_set_array(model, "layers");
    for (unsigned i = 0; i < graph->node_count; i++)
        json_append(layers, describe_layer(&graph->nodes[i]));
    return model;
}
