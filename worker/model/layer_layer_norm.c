/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/model/layer.h"

enum { WEIGHT, BIAS };

static int64_t width(const struct layer *layer)
{
    return layer->output.dims[layer->output.rank - 1];
}

static int64_t rows(const struct layer *layer, int64_t n)
{
    return n * layer_shape_elements(&layer->output) / width(layer);
}

static int resolve(struct layer *layer, struct error *error)
{
    if (layer->inputs[0].integral)
        return error_set(error, ERROR_INVALID, "tokens need an embedding layer first");
    layer->output = layer->inputs[0];
    layer->parameters[WEIGHT] = (struct layer_parameter){"weight", {width(layer)}, 1, START_ONE, 0, 0, false, false};
    layer->parameters[BIAS] = (struct layer_parameter){"bias", {width(layer)}, 1, START_ZERO, 0, 0, false, false};
    layer->parameter_count = 2;
    return 0;
}

static void forward(const struct layer_call *call)
{
    int64_t r = rows(call->layer, call->n);
    device_layer_norm_forward_stored(call->stream, call->stored,
                                     &(struct layer_norm_forward){
                                         .rows = r,
                                         .c = width(call->layer),
                                         .x = call->x[0],
                                         .weight = call->parameters[WEIGHT],
                                         .bias = call->parameters[BIAS],
                                         .y = call->y,
                                         .mean = call->kept,
                                         .rstd = call->kept + r,
                                     });
}

static void backward(const struct layer_call *call)
{
    int64_t r = rows(call->layer, call->n);
    device_layer_norm_backward_stored(call->stream, call->stored,
                                      &(struct layer_norm_backward){
                                          .rows = r,
                                          .c = width(call->layer),
                                          .x = call->x[0],
                                          .weight = call->parameters[WEIGHT],
                                          .mean = call->kept,
                                          .rstd = call->kept + r,
                                          .dy = call->dy,
                                          .dx = call->dx,
                                          .dweight = call->gradients[WEIGHT],
                                          .dbias = call->gradients[BIAS],
                                          .workspace = call->workspace,
                                          .accumulate = call->accumulate,
                                      });
}

static int64_t kept(const struct layer *layer, int64_t n)
{
    return 2 * rows(layer, n);
}

static int64_t workspace(const struct layer *layer, int64_t n)
{
    return layer_norm_workspace(rows(layer, n), width(layer));
}

const struct layer_kind layer_layer_norm = {
    .type = LAYER_LAYER_NORM,
    .input_count = 1,
    .forgets_output = true,
    .repeats = true,
    .resolve = resolve,
    .forward = forward,
    .backward_parameters = backward,
    .kept = kept,
    .workspace = workspace,
};
