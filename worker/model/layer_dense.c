/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/model/layer.h"

enum { WEIGHT, BIAS };

static int64_t features_in(const struct layer *layer)
{
    return layer->inputs[0].dims[layer->inputs[0].rank - 1];
}

/* Rows of the product for one example: 1, or the positions of a sequence. */
static int64_t rows(const struct layer *layer)
{
    return layer_shape_elements(&layer->inputs[0]) / features_in(layer);
}

static int resolve(struct layer *layer, struct error *error)
{
    const struct layer_shape *input = &layer->inputs[0];
    int64_t units = layer->spec.units;
    if (units == FIELD_UNSET || units < 1)
        return error_set(error, ERROR_INVALID, "units must be given and at least 1");
    if (input->integral)
        return error_set(error, ERROR_INVALID, "tokens need an embedding layer first");
    if (input->rank > 2)
        return error_set(error, ERROR_INVALID, "images need a flatten layer first");
    layer->output = *input;
    layer->output.dims[input->rank - 1] = units;
    layer->parameters[WEIGHT] = (struct layer_parameter){
        "weight", {units, features_in(layer)}, 2, START_NORMAL, features_in(layer), units, false, false};
    layer->parameters[BIAS] = (struct layer_parameter){"bias", {units}, 1, START_ZERO, 0, 0, false, false};
    layer->parameters[WEIGHT].borrowed = layer->spec.weights_of != NULL;
    layer->parameter_count = layer->spec.bias ? 2 : 1;
    return 0;
}

static void forward(const struct layer_call *call)
{
    device_dense_forward_stored(call->stream, call->stored,
                                &(struct dense_forward){
                                    .m = call->n * rows(call->layer),
                                    .n = call->layer->spec.units,
                                    .k = features_in(call->layer),
                                    .x = call->x[0],
                                    .weight = call->weight,
                                    .bias = call->bias,
                                    .y = call->y,
                                    .activation = call->layer->applies_relu ? ACTIVATION_RELU : ACTIVATION_NONE,
                                    .tf32 = call->tf32,
                                    .gelu = call->gelu,
                                    .y_row = call->y_row,
                                });
}

static void backward_parameters(const struct layer_call *call)
{
    device_dense_backward_weight_stored(call->stream, call->stored,
                                        &(struct dense_backward_weight){
                                            .m = call->n * rows(call->layer),
                                            .n = call->layer->spec.units,
                                            .k = features_in(call->layer),
                                            .dy = call->dy,
                                            .x = call->x[0],
                                            .dweight = call->gradients[WEIGHT],
                                            .dbias = call->gradients[BIAS],
                                            .accumulate = call->accumulate,
                                            .tf32 = call->tf32,
                                            .dy_row = call->y_row,
                                        });
}

static void backward_input(const struct layer_call *call)
{
    device_dense_backward_data_stored(call->stream, call->stored,
                                      &(struct dense_backward_data){
                                          .m = call->n * rows(call->layer),
                                          .n = call->layer->spec.units,
                                          .k = features_in(call->layer),
                                          .dy = call->dy,
                                          .weight = call->weight,
                                          .relu_output = call->layer->input_is_relu ? call->x[0] : NULL,
                                          .dx = call->dx,
                                          .tf32 = call->tf32,
                                          .gelu_input = call->gelu_input,
                                          .dy_row = call->y_row,
                                      });
}

static double multiply_adds(const struct layer *layer)
{
    return (double)rows(layer) * (double)features_in(layer) * (double)layer->spec.units;
}

const struct layer_kind layer_dense = {
    .type = LAYER_DENSE,
    .input_count = 1,
    .can_apply_relu = true,
    .can_mask_input = true,
    .can_fuse_gelu = true,
    .forgets_output = true,
    .resolve = resolve,
    .forward = forward,
    .backward_parameters = backward_parameters,
    .backward_input = backward_input,
    .multiply_adds = multiply_adds,
};
