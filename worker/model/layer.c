/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/model/layer.h"

#include <stdio.h>

int64_t layer_shape_elements(const struct layer_shape *shape)
{
    int64_t elements = 1;
    for (unsigned i = 0; i < shape->rank; i++)
        elements *= shape->dims[i];
    return elements;
}

int64_t layer_parameter_elements(const struct layer_parameter *parameter)
{
    int64_t elements = 1;
    for (unsigned i = 0; i < parameter->rank; i++)
        elements *= parameter->shape[i];
    return elements;
}

void layer_shape_print(const struct layer_shape *shape, char text[LAYER_SHAPE_TEXT_MAX])
{
    size_t length = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < shape->rank; i++)
        length += (size_t)snprintf(text + length, LAYER_SHAPE_TEXT_MAX - length, "%s%lld", i ? "x" : "",
                                   (long long)shape->dims[i]);
}

int layer_refuse_input(const struct layer_shape *input, struct error *error)
{
    char shape[LAYER_SHAPE_TEXT_MAX];
    layer_shape_print(input, shape);
    return error_set(
        error, ERROR_INVALID,
        "it takes images (height, width, channels), but its input is %s%s; change the layer before it, or, "
        "if it is the first one, model.inputShape",
        input->integral ? "tokens: " : "", shape);
}

const struct layer_kind *layer_kind_of(enum layer_type type)
{
    static const struct layer_kind *const kinds[] = {
        &layer_dense,     &layer_conv2d, &layer_max_pool,   &layer_average_pool, &layer_relu,
        &layer_gelu,      &layer_tanh,   &layer_flatten,    &layer_layer_norm,   &layer_embedding,
        &layer_attention, &layer_add,    &layer_batch_norm, &layer_shortcut,     &layer_global_average_pool,
        &layer_dropout,   &layer_concat,
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i]->type == type)
            return kinds[i];
    return NULL;
}
