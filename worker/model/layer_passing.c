/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers whose inputs' gradients are the output's own: flatten, add.
 */
#include "worker/model/layer.h"

static int flatten_resolve(struct layer *layer, struct error *error)
{
    if (layer->inputs[0].integral)
        return error_set(error, ERROR_INVALID, "tokens cannot be flattened");
    layer->output = (struct layer_shape){{layer_shape_elements(&layer->inputs[0])}, 1, false};
    return 0;
}

static int add_resolve(struct layer *layer, struct error *error)
{
    const struct layer_shape *a = &layer->inputs[0], *b = &layer->inputs[1];
    bool same = a->rank == b->rank && !a->integral && !b->integral;
    for (unsigned i = 0; same && i < a->rank; i++)
        same = a->dims[i] == b->dims[i];
    if (!same) {
        char left[LAYER_SHAPE_TEXT_MAX], right[LAYER_SHAPE_TEXT_MAX];
        layer_shape_print(a, left);
        layer_shape_print(b, right);
        return error_set(
            error, ERROR_INVALID,
            "cannot add %s and %s; give the two layers before it the same output, such as by their units or "
            "filters",
            left, right);
    }
    layer->output = *a;
    return 0;
}

static void add_ahead(const struct layer_call *call)
{
    int64_t count = call->n * layer_shape_elements(&call->layer->output);
    device_add_forward_stored(call->stream, call->stored,
                              &(struct add_forward){count, call->x[0], call->x[1], call->y,
                                                    call->layer->applies_relu ? ACTIVATION_RELU : ACTIVATION_NONE});
}

const struct layer_kind layer_flatten = {
    .type = LAYER_FLATTEN,
    .input_count = 1,
    .gradient_passes = true,
    .resolve = flatten_resolve,
};

const struct layer_kind layer_add = {
    .type = LAYER_ADD,
    .input_count = 2,
    .can_apply_relu = true,
    .gradient_passes = true,
    .forgets_output = true,
    .forgets_input = true,
    .resolve = add_resolve,
    .forward = add_ahead,
};
