/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/model/layer.h"

static int same_shape(struct layer *layer, struct error *error)
{
    if (layer->inputs[0].integral)
        return error_set(error, ERROR_INVALID, "tokens need an embedding layer first");
    layer->output = layer->inputs[0];
    return 0;
}

static int64_t count(const struct layer_call *call)
{
    return call->n * layer_shape_elements(&call->layer->output);
}

static void relu_ahead(const struct layer_call *call)
{
    device_relu_forward_stored(call->stream, call->stored, &(struct relu_forward){count(call), call->x[0], call->y});
}
static void relu_back(const struct layer_call *call)
{
    device_relu_backward_stored(call->stream, call->stored,
                                &(struct relu_backward){count(call), call->y, call->dy, call->dx});
}

static void gelu_ahead(const struct layer_call *call)
{
    device_gelu_forward_stored(call->stream, call->stored, &(struct gelu_forward){count(call), call->x[0], call->y});
}
static void gelu_back(const struct layer_call *call)
{
    device_gelu_backward_stored(call->stream, call->stored,
                                &(struct gelu_backward){count(call), call->x[0], call->dy, call->dx});
}

static void tanh_ahead(const struct layer_call *call)
{
    device_tanh_forward_stored(call->stream, call->stored, &(struct tanh_forward){count(call), call->x[0], call->y});
}
static void tanh_back(const struct layer_call *call)
{
    device_tanh_backward_stored(call->stream, call->stored,
                                &(struct tanh_backward){count(call), call->y, call->dy, call->dx});
}

const struct layer_kind layer_relu = {
    .type = LAYER_RELU,
    .input_count = 1,
    .resolve = same_shape,
    .forward = relu_ahead,
    .backward_input = relu_back,
};

const struct layer_kind layer_gelu = {
    .type = LAYER_GELU,
    .input_count = 1,
    .forgets_output = true,
    .resolve = same_shape,
    .forward = gelu_ahead,
    .backward_input = gelu_back,
};

const struct layer_kind layer_tanh = {
    .type = LAYER_TANH,
    .input_count = 1,
    .resolve = same_shape,
    .forward = tanh_ahead,
    .backward_input = tanh_back,
};
