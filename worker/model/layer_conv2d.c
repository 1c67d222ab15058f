/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/model/layer.h"
#include "worker/model/window.h"

enum { WEIGHT, BIAS };

/* One row of windows of a padded image must fit a thread's scratch. */
#define ROW_FLOATS_MAX (60 * 1024)

static int resolve(struct layer *layer, struct error *error)
{
    const struct layer_spec *spec = &layer->spec;
    if (spec->filters == FIELD_UNSET || spec->kernel == FIELD_UNSET || spec->filters < 1 || spec->kernel < 1)
        return error_set(error, ERROR_INVALID, "filters and kernel must be given and at least 1");
    if (window_resolve(layer, spec->kernel, 1, error) < 0)
        return -1;
    int64_t width = layer->inputs[0].dims[1] + 2 * spec->kernel, c = layer->inputs[0].dims[2];
    bool goes_back = !layer->reads_batch; /* the way back reads rows of the output's channels */
    if (spec->kernel * width * (goes_back && spec->filters > c ? spec->filters : c) > ROW_FLOATS_MAX)
        return error_set(error, ERROR_INVALID, "a row of %lldx%lld windows over %lld channels is too large",
                         (long long)spec->kernel, (long long)width, (long long)c);
    layer->output.dims[2] = spec->filters;
    int64_t window = spec->kernel * spec->kernel;
    layer->parameters[WEIGHT] = (struct layer_parameter){"weight",   {spec->filters, c, spec->kernel, spec->kernel},
                                                         4,          START_NORMAL,
                                                         c * window, spec->filters * window,
                                                         false,      false};
    layer->parameters[BIAS] = (struct layer_parameter){"bias", {spec->filters}, 1, START_ZERO, 0, 0, false, false};
    layer->parameter_count = spec->bias ? 2 : 1;
    return 0;
}

static struct conv2d_shape shape_of(const struct layer *layer, int64_t n)
{
    const int64_t *in = layer->inputs[0].dims, *out = layer->output.dims;
    return (struct conv2d_shape){.b = n,
                                 .h = in[0],
                                 .w = in[1],
                                 .c = in[2],
                                 .o = out[2],
                                 .kernel = layer->spec.kernel,
                                 .stride = layer->spec.stride,
                                 .padding = layer->spec.padding,
                                 .oh = out[0],
                                 .ow = out[1]};
}

static void forward(const struct layer_call *call)
{
    device_conv2d_forward_stored(call->stream, call->stored,
                                 &(struct conv2d_forward){
                                     .shape = shape_of(call->layer, call->n),
                                     .x = call->x[0],
                                     .weight = call->weight,
                                     .bias = call->bias,
                                     .y = call->y,
                                     .workspace = call->workspace,
                                     .activation = call->layer->applies_relu ? ACTIVATION_RELU : ACTIVATION_NONE,
                                     .tf32 = call->tf32,
                                 });
}

static void backward_parameters(const struct layer_call *call)
{
    device_conv2d_backward_weight_stored(call->stream, call->stored,
                                         &(struct conv2d_backward_weight){
                                             .shape = shape_of(call->layer, call->n),
                                             .dy = call->dy,
                                             .x = call->x[0],
                                             .dweight = call->gradients[WEIGHT],
                                             .dbias = call->gradients[BIAS],
                                             .workspace = call->workspace,
                                             .accumulate = call->accumulate,
                                             .tf32 = call->tf32,
                                         });
}

static void backward_input(const struct layer_call *call)
{
    device_conv2d_backward_data_stored(call->stream, call->stored,
                                       &(struct conv2d_backward_data){
                                           .shape = shape_of(call->layer, call->n),
                                           .dy = call->dy,
                                           .weight = call->weight,
                                           .relu_output = call->layer->input_is_relu ? call->x[0] : NULL,
                                           .dx = call->dx,
                                           .workspace = call->workspace,
                                           .tf32 = call->tf32,
                                       });
}

static int64_t workspace(const struct layer *layer, int64_t n)
{
    struct conv2d_shape shape = shape_of(layer, n);
    return conv2d_workspace(&shape);
}

static double multiply_adds(const struct layer *layer)
{
    return (double)layer_shape_elements(&layer->output) * (double)layer->inputs[0].dims[2] *
           (double)(layer->spec.kernel * layer->spec.kernel);
}

const struct layer_kind layer_conv2d = {
    .type = LAYER_CONV2D,
    .input_count = 1,
    .can_apply_relu = true,
    .can_mask_input = true,
    .forgets_output = true,
    .resolve = resolve,
    .forward = forward,
    .backward_parameters = backward_parameters,
    .backward_input = backward_input,
    .workspace = workspace,
    .multiply_adds = multiply_adds,
};
