/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/model/layer.h"
#include "worker/model/window.h"

static int resolve(struct layer *layer, struct error *error)
{
    if (layer->spec.size == FIELD_UNSET)
        return error_set(error, ERROR_INVALID, "size must be given");
    return window_resolve(layer, layer->spec.size, layer->spec.size, error);
}

static int global_resolve(struct layer *layer, struct error *error)
{
    const struct layer_shape *input = &layer->inputs[0];
    if (input->rank != 3 || input->integral || input->dims[0] != input->dims[1])
        return error_set(error, ERROR_INVALID, "the layer before it must give square images (H W C)");
    layer->spec.size = layer->spec.stride = input->dims[0];
    layer->spec.padding = 0;
    layer->output = (struct layer_shape){{input->dims[2]}, 1, false};
    return 0;
}

static struct pool_shape shape_of(const struct layer_call *call)
{
    const struct layer *layer = call->layer;
    const int64_t *in = layer->inputs[0].dims, *out = layer->output.dims;
    bool global = layer->output.rank == 1;
    return (struct pool_shape){.b = call->n,
                               .h = in[0],
                               .w = in[1],
                               .c = in[2],
                               .size = layer->spec.size,
                               .stride = layer->spec.stride,
                               .padding = layer->spec.padding,
                               .oh = global ? 1 : out[0],
                               .ow = global ? 1 : out[1]};
}

static void max_forward(const struct layer_call *call)
{
    device_max_pool_forward_stored(call->stream, call->stored,
                                   &(struct max_pool_forward){shape_of(call), call->x[0], call->y});
}

static void max_backward(const struct layer_call *call)
{
    device_max_pool_backward_stored(call->stream, call->stored,
                                    &(struct max_pool_backward){
                                        .shape = shape_of(call),
                                        .x = call->x[0],
                                        .y = call->y,
                                        .dy = call->dy,
                                        .dx = call->dx,
                                        .relu = call->layer->input_is_relu,
                                    });
}

static void average_forward(const struct layer_call *call)
{
    device_average_pool_forward_stored(call->stream, call->stored,
                                       &(struct average_pool_forward){shape_of(call), call->x[0], call->y});
}

static void average_backward(const struct layer_call *call)
{
    device_average_pool_backward_stored(call->stream, call->stored,
                                        &(struct average_pool_backward){shape_of(call), call->dy, call->dx});
}

const struct layer_kind layer_max_pool = {
    .type = LAYER_MAX_POOL,
    .input_count = 1,
    .can_mask_input = true,
    .resolve = resolve,
    .forward = max_forward,
    .backward_input = max_backward,
};

const struct layer_kind layer_average_pool = {
    .type = LAYER_AVERAGE_POOL,
    .input_count = 1,
    .forgets_output = true,
    .forgets_input = true,
    .resolve = resolve,
    .forward = average_forward,
    .backward_input = average_backward,
};

const struct layer_kind layer_global_average_pool = {
    .type = LAYER_GLOBAL_AVERAGE_POOL,
    .input_count = 1,
    .forgets_output = true,
    .forgets_input = true,
    .resolve = global_resolve,
    .forward = average_forward,
    .backward_input = average_backward,
};
