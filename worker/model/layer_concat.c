/* SPDX-License-Identifier: Apache-2.0
 *
 * Inputs side by side along their last dimension.
 */
#include "worker/model/layer.h"

static int64_t width_of(const struct layer_shape *shape)
{
    return shape->dims[shape->rank - 1];
}

static int resolve(struct layer *layer, struct error *error)
{
    layer->output = layer->inputs[0];
    if (layer->output.integral)
        return error_set(error, ERROR_INVALID, "tokens need an embedding layer first");
    for (unsigned i = 1; i < layer->input_count; i++) {
        const struct layer_shape *input = &layer->inputs[i];
        bool same = input->rank == layer->output.rank && !input->integral;
        for (unsigned d = 0; same && d + 1 < input->rank; d++)
            same = input->dims[d] == layer->output.dims[d];
        if (!same) {
            char first[LAYER_SHAPE_TEXT_MAX], other[LAYER_SHAPE_TEXT_MAX];
            layer_shape_print(&layer->inputs[0], first);
            layer_shape_print(input, other);
            return error_set(error, ERROR_INVALID, "cannot put %s beside %s: all but the last dimension must be equal",
                             other, first);
        }
        layer->output.dims[input->rank - 1] += width_of(input);
    }
    return 0;
}

static int64_t rows_of(const struct layer_call *call)
{
    return call->n * layer_shape_elements(&call->layer->output) / width_of(&call->layer->output);
}

static int64_t column_of(const struct layer *layer, unsigned input)
{
    int64_t column = 0;
    for (unsigned i = 0; i < input; i++)
        column += width_of(&layer->inputs[i]);
    return column;
}

static void forward(const struct layer_call *call)
{
    const struct layer *layer = call->layer;
    for (unsigned i = 0; i < layer->input_count; i++)
        device_copy_columns_stored(call->stream, call->stored,
                                   &(struct copy_columns){.rows = rows_of(call),
                                                          .columns = width_of(&layer->inputs[i]),
                                                          .from_row = width_of(&layer->inputs[i]),
                                                          .to_row = width_of(&layer->output),
                                                          .from = call->x[i],
                                                          .to = layer_values(call, call->y, column_of(layer, i))});
}

static void backward(const struct layer_call *call)
{
    const struct layer *layer = call->layer;
    int64_t columns = width_of(&layer->inputs[call->input]);
    device_copy_columns_stored(
        call->stream, call->stored,
        &(struct copy_columns){.rows = rows_of(call),
                               .columns = columns,
                               .from_row = width_of(&layer->output),
                               .to_row = columns,
                               .from = layer_values(call, call->dy, column_of(layer, call->input)),
                               .to = call->dx});
}

const struct layer_kind layer_concat = {
    .type = LAYER_CONCAT,
    .input_count = LAYER_INPUTS_ANY,
    .gradients_differ = true,
    .forgets_output = true,
    .forgets_input = true,
    .resolve = resolve,
    .forward = forward,
    .backward_input = backward,
};
