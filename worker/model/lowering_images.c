/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers the layers over images [B,H,W,C]: convolutions, pools, shortcuts.
 */
#include <math.h>

#include "worker/model/lowering_internal.h"

/* ---------------------------------------------------------------- conv2d */

enum { WEIGHT, BIAS };

static struct hlo_value conv2d_forward(struct lowering *l, unsigned number)
{
    const struct layer *layer = lowered_layer(l, number);
    const int64_t padding = layer->spec.padding;
    struct hlo_value x = lowering_rounded(l, lowered_input(l, number, 0));
    struct hlo_value weight = lowering_rounded(l, lowered_parameter(l, number, WEIGHT));
    struct hlo_value y = hlo_convolve(&l->hlo, x, weight,
                                      &(struct hlo_convolution){.layout = "[b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f]",
                                                                .stride = layer->spec.stride,
                                                                .low = {padding, padding},
                                                                .high = {padding, padding},
                                                                .input_dilation = 1,
                                                                .kernel_dilation = 1,
                                                                .shape = lowering_shape(l, &layer->output)});
    return lowering_add_bias(l, number, BIAS, y);
}

/* The gradient of the weight [O,C,K,K]: x slides under dy, whose pixels lie `stride` spacing. The batch takes the place of channels. */
static struct hlo_value conv2d_weight_gradient(struct lowering *l, unsigned number, struct hlo_value dy)
{
    const struct layer *layer = lowered_layer(l, number);
    int64_t kernel = layer->spec.kernel, stride = layer->spec.stride, padding = layer->spec.padding;
    struct hlo_convolution convolution = {.layout = "[f, 0, 1, b]x[i, 0, 1, o]->[f, b, 0, 1]",
                                          .stride = 1,
                                          .low = {padding, padding},
                                          .input_dilation = 1,
                                          .kernel_dilation = stride,
                                          .shape = lowered_parameter(l, number, WEIGHT).shape};
    for (unsigned i = 0; i < 2; i++)
        convolution.high[i] = kernel - layer->inputs[0].dims[i] - padding + (layer->output.dims[i] - 1) * stride;
    return hlo_convolve(&l->hlo, lowering_rounded(l, lowered_input(l, number, 0)), dy, &convolution);
}

/* The gradient of the input: dy, with `stride` - 1 zeros between pixels, under the reversed kernel. */
static struct hlo_value conv2d_input_gradient(struct lowering *l, unsigned number, struct hlo_value dy)
{
    const struct layer *layer = lowered_layer(l, number);
    int64_t kernel = layer->spec.kernel, stride = layer->spec.stride, padding = layer->spec.padding;
    struct hlo_value weight = hlo_reverse(&l->hlo, lowered_parameter(l, number, WEIGHT), HLO_DIMS(2, 3));
    struct hlo_convolution convolution = {.layout = "[b, 0, 1, f]x[i, o, 0, 1]->[b, 0, 1, f]",
                                          .stride = 1,
                                          .low = {kernel - 1 - padding, kernel - 1 - padding},
                                          .input_dilation = stride,
                                          .kernel_dilation = 1,
                                          .shape = lowering_shape(l, &layer->inputs[0])};
    for (unsigned i = 0; i < 2; i++)
        convolution.high[i] = layer->inputs[0].dims[i] - 1 - (layer->output.dims[i] - 1) * stride + padding;
    return hlo_convolve(&l->hlo, dy, lowering_rounded(l, weight), &convolution);
}

static void conv2d_backward(struct lowering *l, unsigned number, struct hlo_value dy)
{
    struct hlo_value operand = lowering_rounded(l, dy);
    lowering_add_parameter_gradient(l, number, WEIGHT, conv2d_weight_gradient(l, number, operand));
    if (lowered_layer(l, number)->spec.bias)
        lowering_add_parameter_gradient(l, number, BIAS, lowering_sum_to_last(l, dy));
    if (lowering_wants_gradient(l, number, 0))
        lowering_add_input_gradient(l, number, 0, conv2d_input_gradient(l, number, operand));
}

const struct layer_lowering lowering_conv2d = {conv2d_forward, conv2d_backward};

/* ---------------------------------------------------------------- pools */

static struct hlo_window window_of(const struct layer *layer)
{
    return (struct hlo_window){layer->spec.size, layer->spec.stride, layer->spec.padding};
}

static struct hlo_value max_pool_forward(struct lowering *l, unsigned number)
{
    struct hlo_window window = window_of(lowered_layer(l, number));
    return hlo_reduce_windows(&l->hlo, "maximum", lowered_input(l, number, 0), &window);
}

/* Adds `width` elements of `value` around the pixels, or removes as many if it is negative. */
static struct hlo_value framed(struct lowering *l, struct hlo_value x, double value, int64_t width)
{
    const struct hlo_padding frame = {.low = {0, width, width}, .high = {0, width, width}};
    return width != 0 ? hlo_pad(&l->hlo, x, value, &frame) : x;
}

/* The padding is added first, since compilers are seldom tested with a scatter that pads. */
static void max_pool_backward(struct lowering *l, unsigned number, struct hlo_value dy)
{
    struct hlo_window window = window_of(lowered_layer(l, number));
    int64_t width = window.padding;
    struct hlo_value x = framed(l, lowered_input(l, number, 0), -INFINITY, width);
    window.padding = 0;
    struct hlo_value dx = hlo_scatter_to_largest(&l->hlo, x, dy, &window);
    lowering_add_input_gradient(l, number, 0, framed(l, dx, 0, -width));
}

/* 1 / the elements of a window. */
static double share_of(const struct layer *layer)
{
    return 1 / (double)(layer->spec.size * layer->spec.size);
}

static struct hlo_value average_pool_forward(struct lowering *l, unsigned number)
{
    const struct layer *layer = lowered_layer(l, number);
    struct hlo_window window = window_of(layer);
    struct hlo_value sums = hlo_reduce_windows(&l->hlo, "add", lowered_input(l, number, 0), &window);
    return hlo_binary_constant(&l->hlo, "multiply", sums, share_of(layer));
}

/* Each pixel of the input gets the sum over the windows that hold it. */
static void average_pool_backward(struct lowering *l, unsigned number, struct hlo_value dy)
{
    const struct layer *layer = lowered_layer(l, number);
    int64_t size = layer->spec.size, stride = layer->spec.stride, low = size - 1 - layer->spec.padding;
    struct hlo_padding spacing = {.low = {0, low, low}, .between = {0, stride - 1, stride - 1}};
    for (unsigned i = 0; i < 2; i++)
        spacing.high[i + 1] = layer->inputs[0].dims[i] - 1 - (layer->output.dims[i] - 1) * stride + layer->spec.padding;
    struct hlo_value shares = hlo_binary_constant(&l->hlo, "multiply", dy, share_of(layer));
    lowering_add_input_gradient(l, number, 0,
                                hlo_reduce_windows(&l->hlo, "add", hlo_pad(&l->hlo, shares, 0, &spacing),
                                                   &(struct hlo_window){.size = size, .stride = 1}));
}

static struct hlo_value global_average_pool_forward(struct lowering *l, unsigned number)
{
    struct hlo_value sums = hlo_reduce(&l->hlo, "add", lowered_input(l, number, 0), HLO_DIMS(1, 2));
    return hlo_binary_constant(&l->hlo, "multiply", sums, share_of(lowered_layer(l, number)));
}

static void global_average_pool_backward(struct lowering *l, unsigned number, struct hlo_value dy)
{
    const struct layer *layer = lowered_layer(l, number);
    struct hlo_value share = hlo_binary_constant(&l->hlo, "multiply", dy, share_of(layer));
    lowering_add_input_gradient(l, number, 0,
                                hlo_broadcast(&l->hlo, share, lowering_shape(l, &layer->inputs[0]), HLO_DIMS(0, 3)));
}

const struct layer_lowering lowering_max_pool = {max_pool_forward, max_pool_backward};
const struct layer_lowering lowering_average_pool = {average_pool_forward, average_pool_backward};
const struct layer_lowering lowering_global_average_pool = {global_average_pool_forward, global_average_pool_backward};

/* ---------------------------------------------------------------- shortcut */

static struct hlo_value shortcut_forward(struct lowering *l, unsigned number)
{
    const struct layer *layer = lowered_layer(l, number);
    struct hlo_value x = lowered_input(l, number, 0);
    for (unsigned i = 0; i < 2; i++)
        x = hlo_slice(&l->hlo, x, i + 1, 0, layer->inputs[0].dims[i], layer->spec.stride);
    return hlo_pad(&l->hlo, x, 0,
                   &(struct hlo_padding){.high = {0, 0, 0, layer->output.dims[2] - layer->inputs[0].dims[2]}});
}

static void shortcut_backward(struct lowering *l, unsigned number, struct hlo_value dy)
{
    const struct layer *layer = lowered_layer(l, number);
    int64_t stride = layer->spec.stride;
    struct hlo_padding spacing = {.between = {0, stride - 1, stride - 1}};
    for (unsigned i = 0; i < 2; i++)
        spacing.high[i + 1] = layer->inputs[0].dims[i] - 1 - (layer->output.dims[i] - 1) * stride;
    struct hlo_value kept = hlo_slice(&l->hlo, dy, 3, 0, layer->inputs[0].dims[2], 1);
    lowering_add_input_gradient(l, number, 0, hlo_pad(&l->hlo, kept, 0, &spacing));
}

const struct layer_lowering lowering_shortcut = {shortcut_forward, shortcut_backward};
