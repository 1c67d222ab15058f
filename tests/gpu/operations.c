/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares every operation on the GPU with the CPU. `n` are the case's sizes; the last is 1 if gradients accumulate.
 */
#include <string.h>

#include "tests/gpu/check.h"

static void product_forward(struct side *s, const int64_t *n, bool tf32)
{
    device_dense_forward_stored(
        s->stream, s->stored,
        &(struct dense_forward){n[0], n[1], n[2], side_values(s, n[0] * n[2], 1), side_values(s, n[1] * n[2], 2),
                                n[3] ? side_values(s, n[1], 3) : NULL, side_output_values(s, n[0] * n[1]),
                                n[3] ? ACTIVATION_RELU : ACTIVATION_NONE, .tf32 = tf32});
}

static void product_backward_data(struct side *s, const int64_t *n, bool tf32)
{
    device_dense_backward_data_stored(s->stream, s->stored,
                                      &(struct dense_backward_data){n[0], n[1], n[2], side_values(s, n[0] * n[1], 1),
                                                                    side_values(s, n[1] * n[2], 2),
                                                                    n[3] ? side_values(s, n[0] * n[2], 3) : NULL,
                                                                    side_output_values(s, n[0] * n[2]), .tf32 = tf32});
}

static void product_backward_weight(struct side *s, const int64_t *n, bool tf32)
{
    device_dense_backward_weight_stored(
        s->stream, s->stored,
        &(struct dense_backward_weight){n[0], n[1], n[2], side_values(s, n[0] * n[1], 1),
                                        side_values(s, n[0] * n[2], 2), side_output(s, n[1] * n[2]),
                                        side_output(s, n[1]), n[3], .tf32 = tf32});
}

/* With a bias that the library may add, and with a GELU if the last size is 1. */
static void product_forward_finished(struct side *s, const int64_t *n, bool tf32)
{
    device_dense_forward_stored(s->stream, s->stored,
                                &(struct dense_forward){.m = n[0],
                                                        .n = n[1],
                                                        .k = n[2],
                                                        .x = side_values(s, n[0] * n[2], 1),
                                                        .weight = side_values(s, n[1] * n[2], 2),
                                                        .bias = side_values(s, n[1], 3),
                                                        .y = side_output_values(s, n[0] * n[1]),
                                                        .gelu = n[3] ? side_output_values(s, n[0] * n[1]) : NULL,
                                                        .tf32 = tf32});
}

/* The backward pass with a GELU. */
static void product_backward_data_finished(struct side *s, const int64_t *n, bool tf32)
{
    device_dense_backward_data_stored(s->stream, s->stored,
                                      &(struct dense_backward_data){.m = n[0],
                                                                    .n = n[1],
                                                                    .k = n[2],
                                                                    .dy = side_values(s, n[0] * n[1], 1),
                                                                    .weight = side_values(s, n[1] * n[2], 2),
                                                                    .gelu_input = side_values(s, n[0] * n[2], 3),
                                                                    .dx = side_output_values(s, n[0] * n[2]),
                                                                    .tf32 = tf32});
}

/* Rows with gaps, which are neither read nor changed. */
#define APART 5

static void product_forward_apart(struct side *s, const int64_t *n, bool tf32)
{
    const int64_t row = n[1] + APART;
    device_dense_forward_stored(s->stream, s->stored,
                                &(struct dense_forward){.m = n[0],
                                                        .n = n[1],
                                                        .k = n[2],
                                                        .x = side_values(s, n[0] * n[2], 1),
                                                        .weight = side_values(s, n[1] * n[2], 2),
                                                        .bias = n[3] ? side_values(s, n[1], 3) : NULL,
                                                        .y = side_output_values(s, n[0] * row),
                                                        .tf32 = tf32,
                                                        .y_row = row});
}

static void product_backward_data_apart(struct side *s, const int64_t *n, bool tf32)
{
    const int64_t row = n[1] + APART;
    device_dense_backward_data_stored(
        s->stream, s->stored,
        &(struct dense_backward_data){.m = n[0],
                                      .n = n[1],
                                      .k = n[2],
                                      .dy = side_values(s, n[0] * row, 1),
                                      .weight = side_values(s, n[1] * n[2], 2),
                                      .gelu_input = n[3] ? side_values(s, n[0] * n[2], 3) : NULL,
                                      .dx = side_output_values(s, n[0] * n[2]),
                                      .tf32 = tf32,
                                      .dy_row = row});
}

static void product_backward_weight_apart(struct side *s, const int64_t *n, bool tf32)
{
    const int64_t row = n[1] + APART;
    device_dense_backward_weight_stored(s->stream, s->stored,
                                        &(struct dense_backward_weight){.m = n[0],
                                                                        .n = n[1],
                                                                        .k = n[2],
                                                                        .dy = side_values(s, n[0] * row, 1),
                                                                        .x = side_values(s, n[0] * n[2], 2),
                                                                        .dweight = side_output(s, n[1] * n[2]),
                                                                        .dbias = side_output(s, n[1]),
                                                                        .accumulate = n[3],
                                                                        .tf32 = tf32,
                                                                        .dy_row = row});
}

#define PRODUCT(direction)                                                                                             \
    static void dense_##direction(struct side *s, const int64_t *n)                                                    \
    {                                                                                                                  \
        product_##direction(s, n, false);                                                                              \
    }                                                                                                                  \
    static void dense_##direction##_tf32(struct side *s, const int64_t *n)                                             \
    {                                                                                                                  \
        product_##direction(s, n, true);                                                                               \
    }
PRODUCT(forward)
PRODUCT(backward_data)
PRODUCT(backward_weight)
PRODUCT(forward_finished)
PRODUCT(backward_data_finished)
PRODUCT(forward_apart)
PRODUCT(backward_data_apart)
PRODUCT(backward_weight_apart)

/* Sizes: images, side, channels in, channels out, kernel, stride, padding. */
static struct conv2d_shape conv2d_shape(const int64_t *n)
{
    int64_t out = (n[1] + 2 * n[6] - n[4]) / n[5] + 1, wide = (n[1] + 3 + 2 * n[6] - n[4]) / n[5] + 1;
    return (struct conv2d_shape){n[0], n[1], n[1] + 3, n[2], n[3], n[4], n[5], n[6], out, wide};
}

static int64_t inputs_of(const struct conv2d_shape *s)
{
    return s->b * s->h * s->w * s->c;
}

static int64_t outputs_of(const struct conv2d_shape *s)
{
    return s->b * s->oh * s->ow * s->o;
}

static int64_t weights_of(const struct conv2d_shape *s)
{
    return s->o * s->c * s->kernel * s->kernel;
}

static void convolve_forward(struct side *s, const int64_t *n, bool tf32)
{
    struct conv2d_shape shape = conv2d_shape(n);
    device_conv2d_forward_stored(
        s->stream, s->stored,
        &(struct conv2d_forward){shape, side_values(s, inputs_of(&shape), 1), side_values(s, weights_of(&shape), 2),
                                 side_values(s, shape.o, 3), side_output_values(s, outputs_of(&shape)),
                                 side_numbers(s, conv2d_workspace(&shape), 4), ACTIVATION_RELU, tf32});
}

static void convolve_backward_data(struct side *s, const int64_t *n, bool tf32)
{
    struct conv2d_shape shape = conv2d_shape(n);
    device_conv2d_backward_data_stored(
        s->stream, s->stored,
        &(struct conv2d_backward_data){shape, side_values(s, outputs_of(&shape), 1),
                                       side_values(s, weights_of(&shape), 2), side_values(s, inputs_of(&shape), 3),
                                       side_output_values(s, inputs_of(&shape)),
                                       side_numbers(s, conv2d_workspace(&shape), 4), tf32});
}

static void convolve_backward_weight(struct side *s, const int64_t *n, bool accumulate, bool tf32)
{
    struct conv2d_shape shape = conv2d_shape(n);
    device_conv2d_backward_weight_stored(
        s->stream, s->stored,
        &(struct conv2d_backward_weight){shape, side_values(s, outputs_of(&shape), 1),
                                         side_values(s, inputs_of(&shape), 2), side_output(s, weights_of(&shape)),
                                         side_output(s, shape.o), side_numbers(s, conv2d_workspace(&shape), 4),
                                         accumulate, tf32});
}

#define CONVOLUTION(name, ...)                                                                                         \
    static void conv2d_##name(struct side *s, const int64_t *n)                                                        \
    {                                                                                                                  \
        convolve_##__VA_ARGS__;                                                                                        \
    }
CONVOLUTION(forward, forward(s, n, false))
CONVOLUTION(forward_tf32, forward(s, n, true))
CONVOLUTION(backward_data, backward_data(s, n, false))
CONVOLUTION(backward_data_tf32, backward_data(s, n, true))
CONVOLUTION(backward_weight, backward_weight(s, n, false, false))
CONVOLUTION(backward_weight_tf32, backward_weight(s, n, false, true))
CONVOLUTION(backward_weight_added, backward_weight(s, n, true, false))

/* Sizes: images, side, channels, size, stride, padding. */
static struct pool_shape pool_shape(const int64_t *n)
{
    int64_t out = (n[1] + 2 * n[5] - n[3]) / n[4] + 1, wide = (n[1] + 3 + 2 * n[5] - n[3]) / n[4] + 1;
    return (struct pool_shape){n[0], n[1], n[1] + 3, n[2], n[3], n[4], n[5], out, wide};
}

static int64_t pool_inputs(const struct pool_shape *s)
{
    return s->b * s->h * s->w * s->c;
}

static int64_t pool_outputs(const struct pool_shape *s)
{
    return s->b * s->oh * s->ow * s->c;
}

static void max_pool_forward(struct side *s, const int64_t *n)
{
    struct pool_shape shape = pool_shape(n);
    device_max_pool_forward_stored(s->stream, s->stored,
                                   &(struct max_pool_forward){shape, side_values(s, pool_inputs(&shape), 1),
                                                              side_output_values(s, pool_outputs(&shape))});
}

/* Its inputs come from a rectifier, so that windows have equal elements: zeros. */
static void backward_max_pool(struct side *s, const int64_t *n, bool relu)
{
    struct pool_shape shape = pool_shape(n);
    int64_t inputs = pool_inputs(&shape), outputs = pool_outputs(&shape);
    float *x = side_values(s, inputs, 1), *y = side_values(s, outputs, 2);
    device_relu_forward_stored(s->stream, s->stored, &(struct relu_forward){inputs, x, x});
    device_max_pool_forward_stored(s->stream, s->stored, &(struct max_pool_forward){shape, x, y});
    device_max_pool_backward_stored(
        s->stream, s->stored,
        &(struct max_pool_backward){shape, x, y, side_values(s, outputs, 3), side_output_values(s, inputs), relu});
}

static void max_pool_backward(struct side *s, const int64_t *n)
{
    backward_max_pool(s, n, false);
}

static void max_pool_backward_rectified(struct side *s, const int64_t *n)
{
    backward_max_pool(s, n, true);
}

static void average_pool_forward(struct side *s, const int64_t *n)
{
    struct pool_shape shape = pool_shape(n);
    device_average_pool_forward_stored(s->stream, s->stored,
                                       &(struct average_pool_forward){shape, side_values(s, pool_inputs(&shape), 1),
                                                                      side_output_values(s, pool_outputs(&shape))});
}

static void average_pool_backward(struct side *s, const int64_t *n)
{
    struct pool_shape shape = pool_shape(n);
    device_average_pool_backward_stored(s->stream, s->stored,
                                        &(struct average_pool_backward){shape, side_values(s, pool_outputs(&shape), 1),
                                                                        side_output_values(s, pool_inputs(&shape))});
}

#define ELEMENTWISE(name, ...)                                                                                         \
    static void name(struct side *s, const int64_t *n)                                                                 \
    {                                                                                                                  \
        device_##name##_stored(s->stream, s->stored, &(struct name){n[0], __VA_ARGS__});                               \
    }
/* For operations that have no values. */
#define ELEMENTWISE_FLOATS(name, ...)                                                                                  \
    static void name(struct side *s, const int64_t *n)                                                                 \
    {                                                                                                                  \
        device_##name(s->stream, &(struct name){n[0], __VA_ARGS__});                                                   \
    }
ELEMENTWISE(relu_forward, side_values(s, n[0], 1), side_output_values(s, n[0]))
ELEMENTWISE(relu_backward, side_values(s, n[0], 1), side_values(s, n[0], 2), side_output_values(s, n[0]))
ELEMENTWISE(gelu_forward, side_values(s, n[0], 1), side_output_values(s, n[0]))
ELEMENTWISE(gelu_backward, side_values(s, n[0], 1), side_values(s, n[0], 2), side_output_values(s, n[0]))
ELEMENTWISE(tanh_forward, side_values(s, n[0], 1), side_output_values(s, n[0]))
ELEMENTWISE(tanh_backward, side_values(s, n[0], 1), side_values(s, n[0], 2), side_output_values(s, n[0]))
ELEMENTWISE(add_forward, side_values(s, n[0], 1), side_values(s, n[0], 2), side_output_values(s, n[0]),
            n[1] ? ACTIVATION_RELU : ACTIVATION_NONE)
ELEMENTWISE(round_bfloat16, side_numbers(s, n[0], 1), side_output_values(s, n[0]))
ELEMENTWISE(round_float16, side_numbers(s, n[0], 1), side_output_values(s, n[0]))
ELEMENTWISE_FLOATS(fill, 0.37f, side_output(s, n[0]))
ELEMENTWISE_FLOATS(scale, 0.37f, side_output(s, n[0]))
ELEMENTWISE(axpy, 0.37f, side_values(s, n[0], 1), side_output_values(s, n[0]))
ELEMENTWISE_FLOATS(square_sums, side_numbers(s, n[0], 1),
                   side_output_doubles(s, (n[0] + SQUARE_SUM_BLOCK - 1) / SQUARE_SUM_BLOCK))
ELEMENTWISE_FLOATS(sgd_update, side_output(s, n[0]), n[3] ? side_output(s, n[0]) : NULL, side_numbers(s, n[0], 1), 0.1f,
                   0.9f, 0.01f, 0.5f, NULL)

static void adamw_update(struct side *s, const int64_t *n)
{
    float *v = side_output(s, n[0]);
    device_relu_forward(s->stream, &(struct relu_forward){n[0], v, v}); /* second moments are not negative */
    device_adamw_update(s->stream, &(struct adamw_update){n[0], side_output(s, n[0]), side_output(s, n[0]), v,
                                                          side_numbers(s, n[0], 1), 1e-3f, 0.9f, 0.999f, 1e-8f, 0.1f,
                                                          0.5f, 3, NULL});
}

/* Merges three vectors as a tree. */
static void merge_vectors(struct side *s, const int64_t *n)
{
    float *left = side_output(s, n[0]), *right = side_output(s, n[0]);
    device_merge_vectors(s->stream,
                         &(struct merge_vectors){n[0], 2, {{right, side_numbers(s, n[0], 1)}, {left, right}}});
}

static void copy_bytes(struct side *s, const int64_t *n)
{
    device_copy(s->stream, &(struct copy){n[0] * 4, side_numbers(s, n[0], 1), side_output(s, n[0])});
}

/* Sizes: rows, columns, distances between rows of the source and of the target. The rest of the target stays unchanged. */
static void copy_columns(struct side *s, const int64_t *n)
{
    device_copy_columns_stored(s->stream, s->stored,
                               &(struct copy_columns){n[0], n[1], n[2], n[3], side_values(s, n[0] * n[2], 1),
                                                      side_output_values(s, n[0] * n[3])});
}

/* The last columns of both. */
static void copy_columns_within(struct side *s, const int64_t *n)
{
    const float *from = side_from(s, side_values(s, n[0] * n[2], 1), n[2] - n[1]);
    device_copy_columns_stored(s->stream, s->stored,
                               &(struct copy_columns){n[0], n[1], n[2], n[3], from,
                                                      side_from(s, side_output_values(s, n[0] * n[3]), n[3] - n[1])});
}

/* Returns whether the CPU must compute two operations separately that are one launch, because a GPU rounds in between. */
static bool is_apart(const struct side *s)
{
    return s->type == DEVICE_TYPE_CPU && s->rounds != STORED_FLOAT32;
}

static void round_between(struct side *s, float *values, int64_t count)
{
    if (s->rounds == STORED_BFLOAT16)
        device_round_bfloat16(s->stream, &(struct round_bfloat16){count, values, values});
    else
        device_round_float16(s->stream, &(struct round_float16){count, values, values});
}

/* The vectors begin at element `from`, so packs of 16 bytes are not aligned. */
static void normalise_from(struct side *s, const int64_t *n, int64_t from)
{
    const int64_t count = n[0] * n[1] + from;
    device_layer_norm_forward_stored(
        s->stream, s->stored,
        &(struct layer_norm_forward){n[0], n[1], side_from(s, side_values(s, count, 1), from),
                                     side_numbers(s, n[1] + from, 2) + from, side_numbers(s, n[1] + from, 3) + from,
                                     side_from(s, side_output_values(s, count), from), side_output(s, n[0]),
                                     side_output(s, n[0]), NULL, NULL});
}

static void layer_norm_forward(struct side *s, const int64_t *n)
{
    normalise_from(s, n, 0);
}

static void layer_norm_forward_unaligned(struct side *s, const int64_t *n)
{
    normalise_from(s, n, 1);
}

/* Normalises a residual sum as it is stored. The CPU computes the sum separately. */
static void layer_norm_forward_of_sum(struct side *s, const int64_t *n)
{
    const int64_t count = n[0] * n[1];
    struct layer_norm_forward norm = {.rows = n[0],
                                      .c = n[1],
                                      .x = side_values(s, count, 1),
                                      .weight = side_numbers(s, n[1], 2),
                                      .bias = side_numbers(s, n[1], 3),
                                      .y = side_output_values(s, count),
                                      .mean = side_output(s, n[0]),
                                      .rstd = side_output(s, n[0]),
                                      .past = side_values(s, count, 4),
                                      .sum = side_output_values(s, count)};
    if (is_apart(s)) {
        device_add_forward(s->stream, &(struct add_forward){count, norm.x, norm.past, norm.sum, ACTIVATION_NONE});
        round_between(s, norm.sum, count);
        norm.x = norm.sum;
        norm.past = NULL;
    }
    device_layer_norm_forward_stored(s->stream, s->stored, &norm);
}

static void backward_layer_norm(struct side *s, const int64_t *n, bool add, bool in_place)
{
    float *x = side_values(s, n[0] * n[1], 1), *weight = side_numbers(s, n[1], 2), *bias = side_numbers(s, n[1], 3);
    float *mean = side_numbers(s, n[0], 4), *rstd = side_numbers(s, n[0], 5), *y = side_values(s, n[0] * n[1], 6);
    float *dx = side_output_values(s, n[0] * n[1]);
    device_layer_norm_forward_stored(
        s->stream, s->stored, &(struct layer_norm_forward){n[0], n[1], x, weight, bias, y, mean, rstd, NULL, NULL});
    device_layer_norm_backward_stored(
        s->stream, s->stored,
        &(struct layer_norm_backward){n[0], n[1], x, weight, mean, rstd, in_place ? dx : side_values(s, n[0] * n[1], 7),
                                      dx, side_output(s, n[1]), side_output(s, n[1]),
                                      side_numbers(s, layer_norm_workspace(n[0], n[1]), 8), n[3], add});
}

static void layer_norm_backward(struct side *s, const int64_t *n)
{
    backward_layer_norm(s, n, false, false);
}

static void layer_norm_backward_added(struct side *s, const int64_t *n)
{
    backward_layer_norm(s, n, true, false);
}

static void layer_norm_backward_in_place(struct side *s, const int64_t *n)
{
    backward_layer_norm(s, n, false, true);
}

/* Sizes: B, T, C, vocabulary. */
static void embedding_forward(struct side *s, const int64_t *n)
{
    device_embedding_forward_stored(
        s->stream, s->stored,
        &(struct embedding_forward){n[0], n[1], n[2], n[3], side_tokens(s, n[0] * n[1], n[3], 1),
                                    side_numbers(s, n[3] * n[2], 2), side_numbers(s, n[1] * n[2], 3),
                                    side_output_values(s, n[0] * n[1] * n[2])});
}

/* If `begun`, a tied output has begun the gradient of the token table. */
static void backward_embedding(struct side *s, const int64_t *n, bool accumulate, bool begun)
{
    device_embedding_backward_stored(
        s->stream, s->stored,
        &(struct embedding_backward){n[0], n[1], n[2], n[3], side_tokens(s, n[0] * n[1], n[3], 1),
                                     side_values(s, n[0] * n[1] * n[2], 2), side_output(s, n[3] * n[2]),
                                     side_output(s, n[1] * n[2]), accumulate, begun});
}

static void embedding_backward(struct side *s, const int64_t *n)
{
    backward_embedding(s, n, false, false);
}

static void embedding_backward_added(struct side *s, const int64_t *n)
{
    backward_embedding(s, n, true, false);
}

static void embedding_backward_begun(struct side *s, const int64_t *n)
{
    backward_embedding(s, n, false, true);
}

/* A GPU's order of additions, which must not depend on where the tokens are kept: up to 32 equal segments of at least 256 tokens are each
 * summed token by token, and then their sums are added. The CPU computes each segment as a batch of its own. */
#define SEGMENT_TOKENS 256
static void embedding_backward_in_order(struct side *s, const int64_t *n)
{
    if (s->type != DEVICE_TYPE_CPU) {
        backward_embedding(s, n, false, false);
        return;
    }
    const int64_t count = n[0] * n[1], elements = n[3] * n[2];
    int64_t segments = count / SEGMENT_TOKENS < 32 ? count / SEGMENT_TOKENS : 32;
    segments = segments < 1 ? 1 : segments;
    const int32_t *tokens = side_tokens(s, count, n[3], 1);
    float *dy = side_values(s, count * n[2], 2), *sums = side_output(s, elements),
          *dposition = side_output(s, n[1] * n[2]);
    float *whole = side_numbers(s, elements, 3), *part = side_numbers(s, elements, 3);
    float *positions = side_numbers(s, count * n[2], 4);
    device_embedding_backward_stored(
        s->stream, s->stored,
        &(struct embedding_backward){n[0], n[1], n[2], n[3], tokens, dy, whole, dposition, false, false});
    device_fill(s->stream, &(struct fill){elements, 0, sums});
    for (int64_t segment = 0; segment < segments; segment++) {
        const int64_t first = count * segment / segments, end = count * (segment + 1) / segments;
        device_embedding_backward_stored(s->stream, s->stored,
                                         &(struct embedding_backward){1, end - first, n[2], n[3], tokens + first,
                                                                      side_from(s, dy, first * n[2]), part, positions,
                                                                      false, false});
        device_axpy(s->stream, &(struct axpy){elements, 1, part, sums});
    }
}

/* ---------------------------------------------------------------- batch normalisation, ways past a block, dropout */

static float *variances(struct side *s, int64_t count, uint32_t seed)
{
    float *values = side_numbers(s, count, seed), *positive = side_numbers(s, count, seed);
    device_add_forward(s->stream, &(struct add_forward){count, values, positive, positive, ACTIVATION_RELU});
    return positive;
}

/* Sizes: rows, C, whether rectified or accumulated, and the number of values to skip at the start, so that packs of 16 bytes are not
 * aligned. */
static void normalise_batch(struct side *s, const int64_t *n, bool adds)
{
    const int64_t count = n[0] * n[1], from = n[3];
    struct batch_norm_forward norm = {.rows = n[0],
                                      .c = n[1],
                                      .x = side_from(s, side_values(s, count + from, 1), from),
                                      .weight = side_numbers(s, n[1], 2),
                                      .bias = side_numbers(s, n[1], 3),
                                      .y = side_output_values(s, count),
                                      .mean = side_output(s, n[1]),
                                      .rstd = side_output(s, n[1]),
                                      .variance = side_output(s, n[1]),
                                      .workspace = side_numbers(s, batch_norm_workspace(n[0], n[1]), 4),
                                      .activation = n[2] ? ACTIVATION_RELU : ACTIVATION_NONE,
                                      .past = adds ? side_values(s, count, 5) : NULL};
    const struct add_forward add = {count, norm.y, norm.past, norm.y, norm.activation};
    const bool apart = adds && is_apart(s);
    if (apart) {
        norm.past = NULL;
        norm.activation = ACTIVATION_NONE;
    }
    device_batch_norm_forward_stored(s->stream, s->stored, &norm);
    if (apart) {
        round_between(s, norm.y, count);
        device_add_forward(s->stream, &add);
    }
}

static void batch_norm_forward(struct side *s, const int64_t *n)
{
    normalise_batch(s, n, false);
}

static void batch_norm_forward_of_sum(struct side *s, const int64_t *n)
{
    normalise_batch(s, n, true);
}

/* Values far from zero, the first row farther: sums about the first row, or about zero, would lose all digits. */
static void batch_norm_forward_far(struct side *s, const int64_t *n)
{
    const int64_t count = n[0] * n[1];
    float *x = side_numbers(s, count, 1);
    device_fill(s->stream, &(struct fill){count, 300, side_output(s, count)});
    device_axpy(s->stream, &(struct axpy){count, 1, s->outputs[0].memory, x});
    device_fill(s->stream, &(struct fill){n[1], 20000, x});
    device_batch_norm_forward(
        s->stream, &(struct batch_norm_forward){.rows = n[0],
                                                .c = n[1],
                                                .x = x,
                                                .weight = side_numbers(s, n[1], 2),
                                                .bias = side_numbers(s, n[1], 3),
                                                .y = side_output(s, count),
                                                .mean = side_output(s, n[1]),
                                                .rstd = side_output(s, n[1]),
                                                .variance = side_output(s, n[1]),
                                                .workspace = side_numbers(s, batch_norm_workspace(n[0], n[1]), 4)});
}

enum rectifier { RECTIFIER_NONE, RECTIFIER_OWN, RECTIFIER_OF_SUM, RECTIFIER_OF_SUM_OF_TWO };

static void backward_batch_norm(struct side *s, const int64_t *n, enum rectifier rectifier)
{
    const int64_t count = n[0] * n[1], from = n[3];
    const bool sum = rectifier >= RECTIFIER_OF_SUM;
    struct batch_norm_backward batch = {.rows = n[0],
                                        .c = n[1],
                                        .x = side_from(s, side_values(s, count + from, 1), from),
                                        .weight = side_numbers(s, n[1], 2),
                                        .mean = side_numbers(s, n[1], 3),
                                        .rstd = variances(s, n[1], 4),
                                        .variance = variances(s, n[1], 5),
                                        .dy = side_values(s, count, 6),
                                        .dx = side_output_values(s, count),
                                        .dweight = side_output(s, n[1]),
                                        .dbias = side_output(s, n[1]),
                                        .running_mean = side_numbers(s, n[1], 7),
                                        .running_variance = variances(s, n[1], 8),
                                        .mean_step = side_output(s, n[1]),
                                        .variance_step = side_output(s, n[1]),
                                        .momentum = 0.1f,
                                        .share = 0.5f,
                                        .workspace = side_numbers(s, batch_norm_workspace(n[0], n[1]), 9),
                                        .accumulate = n[2],
                                        .bias = rectifier == RECTIFIER_OWN ? side_numbers(s, n[1], 10) : NULL,
                                        .activation = rectifier == RECTIFIER_OWN ? ACTIVATION_RELU : ACTIVATION_NONE,
                                        .relu_output = sum ? side_values(s, count, 11) : NULL,
                                        .masked = sum ? side_output_values(s, count) : NULL};
    if (sum) /* in place */
        batch.dy = batch.masked;
    if (rectifier == RECTIFIER_OF_SUM_OF_TWO)
        batch.others = side_values(s, count, 12);
    if (batch.others && is_apart(s)) {
        device_axpy(s->stream, &(struct axpy){count, 1, batch.others, batch.masked});
        round_between(s, batch.masked, count);
        batch.others = NULL;
    }
    device_batch_norm_backward_stored(s->stream, s->stored, &batch);
}

#define BATCH_NORM_BACKWARD(name, rectifier)                                                                           \
    static void batch_norm_backward##name(struct side *s, const int64_t *n)                                            \
    {                                                                                                                  \
        backward_batch_norm(s, n, rectifier);                                                                          \
    }
BATCH_NORM_BACKWARD(, RECTIFIER_NONE)
BATCH_NORM_BACKWARD(_rectified, RECTIFIER_OWN)
BATCH_NORM_BACKWARD(_of_sum, RECTIFIER_OF_SUM)
BATCH_NORM_BACKWARD(_of_sum_of_two, RECTIFIER_OF_SUM_OF_TWO)

static void infer_batch(struct side *s, const int64_t *n, bool adds)
{
    const int64_t count = n[0] * n[1];
    struct batch_norm_inference norm = {.rows = n[0],
                                        .c = n[1],
                                        .x = side_values(s, count, 1),
                                        .weight = side_numbers(s, n[1], 2),
                                        .bias = side_numbers(s, n[1], 3),
                                        .running_mean = side_numbers(s, n[1], 4),
                                        .running_variance = variances(s, n[1], 5),
                                        .y = side_output_values(s, count),
                                        .activation = n[2] ? ACTIVATION_RELU : ACTIVATION_NONE,
                                        .past = adds ? side_values(s, count, 6) : NULL};
    const struct add_forward add = {count, norm.y, norm.past, norm.y, norm.activation};
    const bool apart = adds && is_apart(s);
    if (apart) {
        norm.past = NULL;
        norm.activation = ACTIVATION_NONE;
    }
    device_batch_norm_inference_stored(s->stream, s->stored, &norm);
    if (apart) {
        round_between(s, norm.y, count);
        device_add_forward(s->stream, &add);
    }
}

static void batch_norm_inference(struct side *s, const int64_t *n)
{
    infer_batch(s, n, false);
}

static void batch_norm_inference_of_sum(struct side *s, const int64_t *n)
{
    infer_batch(s, n, true);
}

/* Sizes: B, H, W, C, O, stride. */
static struct shortcut_shape shortcut_of(const int64_t *n)
{
    return (struct shortcut_shape){n[0], n[1], n[2], n[3], n[4], n[5]};
}

static int64_t strided(int64_t size, int64_t stride)
{
    return (size + stride - 1) / stride;
}

static void shortcut_forward(struct side *s, const int64_t *n)
{
    int64_t outputs = n[0] * strided(n[1], n[5]) * strided(n[2], n[5]) * n[4];
    device_shortcut_forward_stored(s->stream, s->stored,
                                   &(struct shortcut_forward){shortcut_of(n),
                                                              side_values(s, n[0] * n[1] * n[2] * n[3], 1),
                                                              side_output_values(s, outputs)});
}

static void shortcut_backward(struct side *s, const int64_t *n)
{
    int64_t outputs = n[0] * strided(n[1], n[5]) * strided(n[2], n[5]) * n[4];
    device_shortcut_backward_stored(s->stream, s->stored,
                                    &(struct shortcut_backward){shortcut_of(n), side_values(s, outputs, 1),
                                                                side_output_values(s, n[0] * n[1] * n[2] * n[3])});
}

/* Sizes: examples, elements, step. */
static void dropout(struct side *s, const int64_t *n)
{
    device_dropout_stored(s->stream, s->stored,
                          &(struct dropout){.examples = n[0],
                                            .elements = n[1],
                                            .x = side_values(s, n[0] * n[1], 1),
                                            .y = side_output_values(s, n[0] * n[1]),
                                            .rate = 0.3f,
                                            .key = 0x1234567890abcdefu,
                                            .layer = 5,
                                            .step = (uint32_t)n[2],
                                            .first_example = (int64_t)1 << 33});
}

/* Sizes: B, T, C, heads. */
static void attention_forward(struct side *s, const int64_t *n)
{
    device_attention_forward_stored(
        s->stream, s->stored,
        &(struct attention_forward){n[0], n[1], n[2], n[3], side_values(s, n[0] * n[1] * n[2] * 3, 1),
                                    side_output_values(s, n[0] * n[1] * n[2]), side_output(s, n[0] * n[3] * n[1]), 0});
}

static void attention_backward(struct side *s, const int64_t *n)
{
    int64_t outputs = n[0] * n[1] * n[2];
    float *qkv = side_values(s, outputs * 3, 1), *y = side_values(s, outputs, 2);
    float *logsumexp = side_numbers(s, n[0] * n[3] * n[1], 3);
    device_attention_forward_stored(s->stream, s->stored,
                                    &(struct attention_forward){n[0], n[1], n[2], n[3], qkv, y, logsumexp, 0});
    device_attention_backward_stored(s->stream, s->stored,
                                     &(struct attention_backward){n[0], n[1], n[2], n[3], qkv, y,
                                                                  side_values(s, outputs, 4), logsumexp,
                                                                  side_output_values(s, outputs * 3)});
}

/* In place if the last size is 1. */
static void softmax_cross_entropy(struct side *s, const int64_t *n)
{
    float *dlogits = side_output_values(s, n[0] * n[1]);
    device_softmax_cross_entropy_stored(
        s->stream, s->stored,
        &(struct softmax_cross_entropy){n[0], n[1], n[3] ? dlogits : side_values(s, n[0] * n[1], 1),
                                        side_tokens(s, n[0], n[1], 2), 0.01f, dlogits, side_workspace(s, 2 * n[0]),
                                        side_output_loss(s), 0, NULL, 0});
}

/* The last two sizes are the rows at a time and the gap between rows; in place. */
static void softmax_cross_entropy_by_parts(struct side *s, const int64_t *n)
{
    const int64_t row = n[1] + n[3];
    float *dlogits = side_output_values(s, n[0] * row);
    int32_t *targets = side_tokens(s, n[0], n[1], 2);
    double *workspace = side_workspace(s, 2 * n[0]);
    struct loss_sums *sums = side_output_loss(s);
    for (int64_t first = 0; first < n[0]; first += n[2]) {
        float *rows = side_from(s, dlogits, first * row);
        int64_t count = n[0] - first < n[2] ? n[0] - first : n[2];
        device_softmax_cross_entropy_stored(
            s->stream, s->stored,
            &(struct softmax_cross_entropy){count, n[1], rows, targets + first, 0.01f, rows, workspace + 2 * first,
                                            first + count == n[0] ? sums : NULL, first, NULL, row});
    }
}

static void mean_squared_error(struct side *s, const int64_t *n)
{
    device_mean_squared_error_stored(
        s->stream, s->stored,
        &(struct mean_squared_error){n[0], n[1], side_values(s, n[0] * n[1], 1), side_numbers(s, n[0] * n[1], 2), 0.01f,
                                     side_output_values(s, n[0] * n[1]), side_workspace(s, 2 * n[0]),
                                     side_output_loss(s), NULL});
}

#define SIZES_MAX 7
#define CASES_MAX 7
static const struct {
    const char *name;
    side_case *function;
    double tolerance;
    int64_t sizes[CASES_MAX][SIZES_MAX]; /* ends before the first that begins with -1 */
} operations[] = {
#define DENSE                                                                                                          \
    {                                                                                                                  \
        {1, 1, 1, 0}, {7, 19, 301, 1}, {13, 65, 17, 0}, {128, 10, 33, 1}, {1000, 70, 9, 1}, {4096, 384, 128, 0},       \
        {                                                                                                              \
            0, 3, 5, 1                                                                                                 \
        }                                                                                                              \
    }
    {"dense_forward", dense_forward, 2e-6, DENSE},
    {"dense_backward_data", dense_backward_data, 2e-6, DENSE},
    {"dense_backward_weight", dense_backward_weight, 5e-6, DENSE},
/* Both factors lose up to 2^-10 of their value. */
#define CUT (2.0 / 1024)
    {"dense_forward tf32", dense_forward_tf32, CUT, DENSE},
    {"dense_backward_data tf32", dense_backward_data_tf32, CUT, DENSE},
    {"dense_backward_weight tf32", dense_backward_weight_tf32, CUT, DENSE},
/* Bias gradients: sums over many rows, of few and of many columns. */
#define BIASES                                                                                                         \
    {                                                                                                                  \
        {3000, 1, 1, 1}, {2500, 8, 1, 0}, {1999, 24, 2, 1}, {1031, 200, 1, 0}, {300, 1031, 1, 1}, {64, 2304, 1, 1},    \
        {                                                                                                              \
            20000, 96, 1, 0                                                                                            \
        }                                                                                                              \
    }
    {"dense_backward_weight's bias", dense_backward_weight, 5e-6, BIASES},
    {"dense_backward_weight's bias apart", dense_backward_weight_apart, 5e-6, BIASES},
#define FINISHED                                                                                                       \
    {                                                                                                                  \
        {3, 1, 8, 0}, {7, 24, 304, 1}, {13, 65, 17, 1}, {128, 8, 32, 0}, {1000, 72, 8, 1}, {2048, 384, 128, 1},        \
        {                                                                                                              \
            0, 8, 16, 1                                                                                                \
        }                                                                                                              \
    }
    {"dense_forward apart", dense_forward_apart, 2e-6, DENSE},
    {"dense_backward_data apart", dense_backward_data_apart, 2e-6, DENSE},
    {"dense_backward_weight apart", dense_backward_weight_apart, 5e-6, DENSE},
    {"dense_forward apart tf32", dense_forward_apart_tf32, CUT, DENSE},
    {"dense_backward_data apart tf32", dense_backward_data_apart_tf32, CUT, DENSE},
    {"dense_backward_weight apart tf32", dense_backward_weight_apart_tf32, CUT, DENSE},
    {"dense_forward finished", dense_forward_finished, 2e-6, FINISHED},
    {"dense_backward_data finished", dense_backward_data_finished, 2e-6, FINISHED},
    {"dense_forward finished tf32", dense_forward_finished_tf32, CUT, FINISHED},
    {"dense_backward_data finished tf32", dense_backward_data_finished_tf32, CUT, FINISHED},
#define CONV                                                                                                           \
    {                                                                                                                  \
        {1, 5, 1, 1, 1, 1, 0}, {3, 9, 3, 5, 3, 1, 1}, {2, 11, 4, 70, 5, 2, 2}, {5, 13, 33, 7, 3, 3, 0},                \
            {64, 25, 1, 32, 3, 1, 0}, {32, 10, 32, 64, 3, 1, 0},                                                       \
        {                                                                                                              \
            64, 25, 64, 8, 3, 1, 0                                                                                     \
        }                                                                                                              \
    }
    {"conv2d_forward", conv2d_forward, 2e-6, CONV},
    {"conv2d_backward_data", conv2d_backward_data, 2e-6, CONV},
    {"conv2d_backward_weight", conv2d_backward_weight, 5e-6, CONV},
    {"conv2d_backward_weight added", conv2d_backward_weight_added, 5e-6, CONV},
    {"conv2d_forward tf32", conv2d_forward_tf32, CUT, CONV},
    {"conv2d_backward_data tf32", conv2d_backward_data_tf32, CUT, CONV},
    {"conv2d_backward_weight tf32", conv2d_backward_weight_tf32, CUT, CONV},
#define POOL                                                                                                           \
    {                                                                                                                  \
        {1, 4, 1, 2, 2, 0}, {3, 9, 5, 3, 2, 1}, {2, 11, 70, 2, 3, 0}, {4, 13, 32, 5, 1, 2}, {3, 10, 24, 3, 2, 1},      \
        {                                                                                                              \
            -1                                                                                                         \
        }                                                                                                              \
    }
    {"max_pool_forward", max_pool_forward, 0, POOL},
    {"max_pool_backward", max_pool_backward, 0, POOL},
    {"max_pool_backward rectified", max_pool_backward_rectified, 0, POOL},
    {"average_pool_forward", average_pool_forward, 0, POOL},
    {"average_pool_backward", average_pool_backward, 0, POOL},
#define COUNTS                                                                                                         \
    {                                                                                                                  \
        {1}, {255}, {16384}, {70001},                                                                                  \
        {                                                                                                              \
            -1                                                                                                         \
        }                                                                                                              \
    }
    {"relu_forward", relu_forward, 0, COUNTS},
    {"relu_backward", relu_backward, 0, COUNTS},
    {"gelu_forward", gelu_forward, 1e-6, COUNTS},
    {"gelu_backward", gelu_backward, 1e-6, COUNTS},
    {"tanh_forward", tanh_forward, 1e-6, COUNTS},
    {"tanh_backward", tanh_backward, 0, COUNTS},
    {"add_forward", add_forward, 0, COUNTS},
    {"add_forward rectified", add_forward, 0, {{255, 1}, {70001, 1}, {-1}}},
    {"round_bfloat16", round_bfloat16, 0, COUNTS},
    {"round_float16", round_float16, 0, COUNTS},
    {"fill", fill, 0, COUNTS},
    {"scale", scale, 0, COUNTS},
    {"axpy", axpy, 0, COUNTS},
    {"merge_vectors", merge_vectors, 0, COUNTS},
    {"copy", copy_bytes, 0, COUNTS},
#define COLUMNS                                                                                                        \
    {                                                                                                                  \
        {1, 1, 1, 1}, {7, 3, 3, 10}, {301, 17, 40, 17}, {4096, 70, 140, 128}, {3, 70001, 70003, 70002},                \
        {                                                                                                              \
            -1                                                                                                         \
        }                                                                                                              \
    }
    {"copy_columns", copy_columns, 0, COLUMNS},
    {"copy_columns within", copy_columns_within, 0, COLUMNS},
    {"square_sums", square_sums, 1e-13, COUNTS},
    {"sgd_update", sgd_update, 0, {{1}, {70001}, {70001, 0, 0, 1}, {-1}}},
    {"adamw_update", adamw_update, 0, COUNTS},
#define NORM                                                                                                           \
    {                                                                                                                  \
        {1, 1}, {5, 33}, {17, 128, 0, 1}, {3000, 65}, {4096, 128, 0, 1}, {131, 768, 0, 1},                             \
        {                                                                                                              \
            7, 1601                                                                                                    \
        }                                                                                                              \
    }
#define WIDE_NORM                                                                                                      \
    {                                                                                                                  \
        {0, 8}, {9, 2048}, {5, 2049}, {5, 4096, 0, 1}, {300, 4104},                                                    \
        {                                                                                                              \
            -1                                                                                                         \
        }                                                                                                              \
    }
    {"layer_norm_forward", layer_norm_forward, 2e-6, NORM},
    {"layer_norm_forward", layer_norm_forward, 2e-6, WIDE_NORM},
    {"layer_norm_forward unaligned", layer_norm_forward_unaligned, 2e-6, {{5, 33}, {131, 768}, {3, 4104}, {-1}}},
    {"layer_norm_forward of a sum", layer_norm_forward_of_sum, 2e-6, NORM},
    {"layer_norm_forward of a sum", layer_norm_forward_of_sum, 2e-6, WIDE_NORM},
    {"layer_norm_backward", layer_norm_backward, 5e-6, NORM},
    {"layer_norm_backward", layer_norm_backward, 5e-6, WIDE_NORM},
    {"layer_norm_backward added", layer_norm_backward_added, 5e-6, NORM},
    {"layer_norm_backward added", layer_norm_backward_added, 5e-6, WIDE_NORM},
    {"layer_norm_backward in place", layer_norm_backward_in_place, 5e-6, {{5, 33}, {131, 768}, {3, 4104}, {-1}}},
#define EMBEDDING                                                                                                      \
    {                                                                                                                  \
        {1, 1, 1, 1}, {3, 7, 5, 11}, {16, 256, 128, 256}, {4, 33, 130, 1000},                                          \
        {                                                                                                              \
            -1                                                                                                         \
        }                                                                                                              \
    }
    {"embedding_forward", embedding_forward, 0, EMBEDDING},
    {"embedding_backward", embedding_backward, 2e-6, EMBEDDING},
    {"embedding_backward added", embedding_backward_added, 2e-6, EMBEDDING},
    {"embedding_backward begun", embedding_backward_begun, 2e-6, EMBEDDING},
    {"embedding_backward in order",
     embedding_backward_in_order,
     0,
     {{1, 300, 1, 131100},
      {3, 171, 129, 7},
      {2, 256, 3, 1},
      {1, 1023, 31, 3001},
      {5, 997, 130, 77},
      {9, 1024, 5, 11},
      {13, 1021, 2, 600}}},
/* Columns that are whole packs of 16 bytes or are not, in one and in several stripes, with one and with many groups of rows. */
#define BATCH_NORM                                                                                                     \
    {                                                                                                                  \
        {1, 1}, {7, 33, 1}, {70001, 3}, {4096, 64, 1}, {333, 520, 0}, {3001, 24, 1, 1},                                \
        {                                                                                                              \
            2500, 272, 1                                                                                               \
        }                                                                                                              \
    }
    {"batch_norm_forward", batch_norm_forward, 5e-6, BATCH_NORM},
    {"batch_norm_forward of a sum", batch_norm_forward_of_sum, 5e-6, BATCH_NORM},
    {"batch_norm_forward far from zero", batch_norm_forward_far, 1e-4, {{4001, 20}, {701, 33}, {-1}}},
    {"batch_norm_backward", batch_norm_backward, 1e-5, BATCH_NORM},
    {"batch_norm_backward of a rectifier", batch_norm_backward_rectified, 1e-5, BATCH_NORM},
    {"batch_norm_backward of a sum", batch_norm_backward_of_sum, 1e-5, BATCH_NORM},
    {"batch_norm_backward of a sum of two gradients", batch_norm_backward_of_sum_of_two, 1e-5, BATCH_NORM},
    {"batch_norm_inference", batch_norm_inference, 2e-6, {{1, 1}, {7, 33, 1}, {4096, 64}, {-1}}},
    {"batch_norm_inference of a sum", batch_norm_inference_of_sum, 2e-6, {{1, 1}, {7, 33, 1}, {4096, 64, 1}, {-1}}},
    {"shortcut_forward", shortcut_forward, 0, {{1, 1, 1, 1, 1, 1}, {3, 9, 7, 5, 12, 2}, {16, 32, 32, 16, 32, 2}, {-1}}},
    {"shortcut_backward",
     shortcut_backward,
     0,
     {{1, 1, 1, 1, 1, 1}, {3, 9, 7, 5, 12, 2}, {16, 32, 32, 16, 32, 2}, {-1}}},
#define PLACES                                                                                                         \
    {                                                                                                                  \
        {1, 3}, {255, 0}, {16385, 6}, {70001, ((int64_t)1 << 34) + 1},                                                 \
        {                                                                                                              \
            -1                                                                                                         \
        }                                                                                                              \
    }
    {"dropout", dropout, 0, {{1, 1}, {3, 1001, 7}, {128, 4096, 70000}, {-1}}},
#define ATTENTION                                                                                                      \
    {                                                                                                                  \
        {1, 1, 1, 1}, {2, 5, 6, 2}, {3, 64, 128, 4}, {2, 129, 100, 2}, {1, 200, 256, 2}, {4, 256, 128, 4},             \
        {                                                                                                              \
            1, 70, 66, 1                                                                                               \
        }                                                                                                              \
    }
    {"attention_forward", attention_forward, 2e-6, ATTENTION},
    {"attention_backward", attention_backward, 5e-6, ATTENTION},
#define LOSS                                                                                                           \
    {                                                                                                                  \
        {1, 1}, {7, 10}, {5, 33, 0, 1}, {4096, 256, 0, 1}, {1000, 1003}, {9, 2048}, /* then beyond shared memory */    \
        {                                                                                                              \
            2, 130001, 0, 1                                                                                            \
        }                                                                                                              \
    }
    {"softmax_cross_entropy", softmax_cross_entropy, 2e-6, LOSS},
    {"softmax_cross_entropy_by_parts",
     softmax_cross_entropy_by_parts,
     2e-6,
     {{1, 1, 1},
      {7, 10, 7},
      {5, 33, 2, 7},
      {4096, 256, 1000},
      {1000, 1003, 512, 5},
      {3, 50257, 2, 7},
      {5, 2051, 2, 0}}},
    {"mean_squared_error", mean_squared_error, 2e-6, LOSS},
};

/* Sums of products stay float32 with two-byte factors, but tensor cores truncate when they add (Fasi et al. 2021): with 34,000 products,
 * as in weight gradients, the error is up to 1e-4. An emulated GPU rounds. */
static double tolerance_of(const char *name, double in_float32, enum stored rounds)
{
    const bool cut = rounds != STORED_FLOAT32 && strstr(name, "backward_weight");
    return cut && in_float32 < 2e-4 ? 2e-4 : in_float32;
}

static void check_all(struct side *cpu, struct side *gpu, const char *beginning)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        for (int c = 0; c < CASES_MAX && operations[i].sizes[c][0] >= 0 &&
                        strncmp(operations[i].name, beginning, strlen(beginning)) == 0 &&
                        !(gpu->rounds && strstr(operations[i].name, " tf32"));
             c++)
            compare_sides(cpu, gpu, operations[i].name, operations[i].function, operations[i].sizes[c],
                          tolerance_of(operations[i].name, operations[i].tolerance, gpu->rounds));
}

/* Operations without values are checked for each precision as well. */
void check_operations(struct side *cpu, struct side *gpu, const char *beginning)
{
    static const enum stored kinds[] = {STORED_FLOAT32, STORED_BFLOAT16, STORED_FLOAT16};
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        cpu->rounds = gpu->rounds = kinds[i];
        gpu->stored = device_stores(gpu->device, kinds[i]) ? kinds[i] : STORED_FLOAT32;
        check_all(cpu, gpu, beginning);
    }
    cpu->rounds = gpu->rounds = gpu->stored = STORED_FLOAT32;
}
