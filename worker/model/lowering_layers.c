/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers the layers that take any shape: dense, activations, sums, concatenations, dropout.
 */
#include "worker/device/dropout_word.h"
#include "worker/model/lowering_internal.h"

/* ---------------------------------------------------------------- dense */

enum { WEIGHT, BIAS };

struct hlo_value lowering_add_bias(struct lowering *l, unsigned number, unsigned p, struct hlo_value y)
{
    if (!lowered_layer(l, number)->spec.bias)
        return y;
    struct hlo_value bias = lowering_rounded(l, lowered_parameter(l, number, p));
    return hlo_binary(&l->hlo, "add", y, lowering_along_last(l, bias, y.shape));
}

/* y[M,N] = x[M,K] w[N,K]^T */
static struct hlo_value dense_forward(struct lowering *l, unsigned number)
{
    struct hlo_value x = lowering_rounded(l, lowering_rows(l, lowered_input(l, number, 0)));
    struct hlo_value weight = lowering_rounded(l, lowered_parameter(l, number, WEIGHT));
    struct hlo_value y =
        hlo_dot(&l->hlo, x, weight, &(struct hlo_product){.contracted_a = HLO_DIMS(1), .contracted_b = HLO_DIMS(1)});
    y = hlo_reshape(&l->hlo, y, lowering_shape(l, &lowered_layer(l, number)->output));
    return lowering_add_bias(l, number, BIAS, y);
}

/* dw[N,K] = dy[M,N]^T x[M,K]; dx[M,K] = dy[M,N] w[N,K] */
static void dense_backward(struct lowering *l, unsigned number, struct hlo_value dy)
{
    struct hlo *h = &l->hlo;
    struct hlo_value input = lowered_input(l, number, 0);
    struct hlo_value rows = lowering_rounded(l, lowering_rows(l, dy));
    struct hlo_value x = lowering_rounded(l, lowering_rows(l, input));
    lowering_add_parameter_gradient(
        l, number, WEIGHT,
        hlo_dot(h, rows, x, &(struct hlo_product){.contracted_a = HLO_DIMS(0), .contracted_b = HLO_DIMS(0)}));
    if (lowered_layer(l, number)->spec.bias)
        lowering_add_parameter_gradient(l, number, BIAS, lowering_sum_to_last(l, dy));
    if (!lowering_wants_gradient(l, number, 0))
        return;
    struct hlo_value weight = lowering_rounded(l, lowered_parameter(l, number, WEIGHT));
    struct hlo_value dx =
        hlo_dot(h, rows, weight, &(struct hlo_product){.contracted_a = HLO_DIMS(1), .contracted_b = HLO_DIMS(0)});
    lowering_add_input_gradient(l, number, 0, hlo_reshape(h, dx, input.shape));
}

const struct layer_lowering lowering_dense = {dense_forward, dense_backward};

/* ---------------------------------------------------------------- activations */

static struct hlo_value relu_forward(struct lowering *l, unsigned number)
{
    return hlo_binary_constant(&l->hlo, "maximum", lowered_input(l, number, 0), 0);
}

static void relu_backward(struct lowering *l, unsigned number, struct hlo_value dy)
{
    struct hlo_value zero = hlo_constant(&l->hlo, HLO_FLOAT32, dy.shape, 0);
    struct hlo_value passes = hlo_compare(&l->hlo, "GT", l->layers[number].output, zero);
    lowering_add_input_gradient(l, number, 0, hlo_select(&l->hlo, passes, dy, zero));
}

static struct hlo_value scaled(struct lowering *l, struct hlo_value x, double factor)
{
    return hlo_binary_constant(&l->hlo, "multiply", x, factor);
}

static struct hlo_value plus(struct lowering *l, struct hlo_value x, double number)
{
    return hlo_binary_constant(&l->hlo, "add", x, number);
}

#define GELU_SLOPE 0.7978845608 /* sqrt(2 / pi) */
#define GELU_CUBE 0.044715

/* tanh(GELU_SLOPE (x + GELU_CUBE x^3)) */
static struct hlo_value gelu_tanh(struct lowering *l, struct hlo_value x)
{
    struct hlo_value cube = scaled(l, lowering_times(l, x, lowering_times(l, x, x)), GELU_CUBE);
    struct hlo_value inside = scaled(l, hlo_binary(&l->hlo, "add", x, cube), GELU_SLOPE);
    return hlo_unary(&l->hlo, "tanh", inside);
}

static struct hlo_value gelu_forward(struct lowering *l, unsigned number)
{
    struct hlo_value x = lowered_input(l, number, 0);
    return lowering_times(l, scaled(l, x, 0.5), plus(l, gelu_tanh(l, x), 1));
}

static void gelu_backward(struct lowering *l, unsigned number, struct hlo_value dy)
{
    struct hlo_value x = lowered_input(l, number, 0), t = gelu_tanh(l, x);
    struct hlo_value slope = scaled(l, plus(l, scaled(l, lowering_times(l, x, x), 3 * GELU_CUBE), 1), GELU_SLOPE);
    struct hlo_value one_minus_square = plus(l, scaled(l, lowering_times(l, t, t), -1), 1); /* 1 - t^2 */
    struct hlo_value first = scaled(l, plus(l, t, 1), 0.5);
    struct hlo_value second = lowering_times(l, lowering_times(l, scaled(l, x, 0.5), one_minus_square), slope);
    lowering_add_input_gradient(l, number, 0, lowering_times(l, dy, hlo_binary(&l->hlo, "add", first, second)));
}

static struct hlo_value tanh_forward(struct lowering *l, unsigned number)
{
    return hlo_unary(&l->hlo, "tanh", lowered_input(l, number, 0));
}

static void tanh_backward(struct lowering *l, unsigned number, struct hlo_value dy)
{
    struct hlo_value y = l->layers[number].output;
    lowering_add_input_gradient(l, number, 0,
                                lowering_times(l, dy, plus(l, scaled(l, lowering_times(l, y, y), -1), 1)));
}

const struct layer_lowering lowering_relu = {relu_forward, relu_backward};
const struct layer_lowering lowering_gelu = {gelu_forward, gelu_backward};
const struct layer_lowering lowering_tanh = {tanh_forward, tanh_backward};

/* ---------------------------------------------------------------- flatten, add, concat */

static struct hlo_value flatten_forward(struct lowering *l, unsigned number)
{
    return hlo_reshape(&l->hlo, lowered_input(l, number, 0), lowering_shape(l, &lowered_layer(l, number)->output));
}

static void flatten_backward(struct lowering *l, unsigned number, struct hlo_value dy)
{
    lowering_add_input_gradient(l, number, 0, hlo_reshape(&l->hlo, dy, lowered_input(l, number, 0).shape));
}

static struct hlo_value add_forward(struct lowering *l, unsigned number)
{
    return hlo_binary(&l->hlo, "add", lowered_input(l, number, 0), lowered_input(l, number, 1));
}

static void add_backward(struct lowering *l, unsigned number, struct hlo_value dy)
{
    lowering_add_input_gradient(l, number, 0, dy);
    lowering_add_input_gradient(l, number, 1, dy);
}

static struct hlo_value concat_forward(struct lowering *l, unsigned number)
{
    const struct layer *layer = lowered_layer(l, number);
    struct hlo_value inputs[LAYER_INPUTS_MAX];
    for (unsigned i = 0; i < layer->input_count; i++)
        inputs[i] = lowered_input(l, number, i);
    return hlo_concatenate(&l->hlo, inputs, layer->input_count, layer->output.rank);
}

static void concat_backward(struct lowering *l, unsigned number, struct hlo_value dy)
{
    const struct layer *layer = lowered_layer(l, number);
    int64_t first = 0;
    for (unsigned i = 0; i < layer->input_count; i++) {
        int64_t width = layer->inputs[i].dims[layer->inputs[i].rank - 1];
        lowering_add_input_gradient(l, number, i, hlo_slice(&l->hlo, dy, layer->output.rank, first, first + width, 1));
        first += width;
    }
}

const struct layer_lowering lowering_flatten = {flatten_forward, flatten_backward};
const struct layer_lowering lowering_add = {add_forward, add_backward};
const struct layer_lowering lowering_concat = {concat_forward, concat_backward};

/* ---------------------------------------------------------------- dropout */

/* Word `index` of the function's seed, repeated to `shape`. */
static struct hlo_value seed_word(struct lowering *l, int64_t index, struct hlo_shape shape)
{
    struct hlo_value word = hlo_slice(&l->hlo, l->seed, 0, index, index + 1, 1);
    return hlo_broadcast(&l->hlo, hlo_reshape(&l->hlo, word, (struct hlo_shape){0}), shape, HLO_NO_DIMS);
}

static struct hlo_value low_word(struct lowering *l, struct hlo_value x)
{
    return hlo_convert(&l->hlo, hlo_binary_constant(&l->hlo, "and", x, UINT32_MAX), HLO_UINT32);
}

static struct hlo_value high_word(struct lowering *l, struct hlo_value x)
{
    return hlo_convert(&l->hlo, hlo_binary_constant(&l->hlo, "shift_right_logical", x, 32), HLO_UINT32);
}

struct philox_values {
    struct hlo_value word[4];
};

static struct hlo_value mixed(struct lowering *l, struct hlo_value a, struct hlo_value b, struct hlo_value key)
{
    return hlo_binary(&l->hlo, "xor", hlo_binary(&l->hlo, "xor", a, b), key);
}

/* The rounds of philox() (common/philox.h), for many counters at a time. */
static struct philox_values philox_words_of(struct lowering *l, struct hlo_value key0, struct hlo_value key1,
                                            struct philox_values w)
{
    struct hlo *h = &l->hlo;
    for (int round = 0; round < 10; round++) {
        struct hlo_value left = hlo_binary_constant(h, "multiply", hlo_convert(h, w.word[0], HLO_UINT64), 0xD2511F53u);
        struct hlo_value right = hlo_binary_constant(h, "multiply", hlo_convert(h, w.word[2], HLO_UINT64), 0xCD9E8D57u);
        w = (struct philox_values){{mixed(l, high_word(l, right), w.word[1], key0), low_word(l, right),
                                    mixed(l, high_word(l, left), w.word[3], key1), low_word(l, left)}};
        key0 = hlo_binary_constant(h, "add", key0, 0x9E3779B9u);
        key1 = hlo_binary_constant(h, "add", key1, 0xBB67AE85u);
    }
    return w;
}

/* The counters of dropout_words() (device/dropout_word.h), for blocks [B, blocks] of four elements. */
static struct philox_values dropout_counters(struct lowering *l, unsigned number, struct hlo_shape blocks)
{
    struct hlo *h = &l->hlo;
    struct hlo_value low = hlo_convert(h, seed_word(l, 3, blocks), HLO_UINT64);
    struct hlo_value high = hlo_convert(h, seed_word(l, 4, blocks), HLO_UINT64);
    struct hlo_value first = hlo_binary(h, "or", low, hlo_binary_constant(h, "shift_left", high, 32));
    struct hlo_value example = hlo_binary(h, "add", first, hlo_iota(h, HLO_UINT64, blocks, 0));
    return (struct philox_values){{hlo_iota(h, HLO_UINT32, blocks, 1), hlo_constant(h, HLO_UINT32, blocks, number),
                                   low_word(l, example),
                                   hlo_binary(h, "or", seed_word(l, 2, blocks), high_word(l, example))}};
}

/* The random word of each element. */
static struct hlo_value dropout_words_of(struct lowering *l, unsigned number, struct hlo_shape shape)
{
    int64_t elements = layer_shape_elements(&lowered_layer(l, number)->output), count = (elements + 3) / 4;
    struct hlo_shape blocks = HLO_SHAPE(l->batch, count);
    struct hlo_value key0 = seed_word(l, 0, blocks), key1 = seed_word(l, 1, blocks);
    struct philox_values words = philox_words_of(l, key0, key1, dropout_counters(l, number, blocks));
    for (unsigned i = 0; i < 4; i++)
        words.word[i] = hlo_reshape(&l->hlo, words.word[i], HLO_SHAPE(l->batch, count, 1));
    struct hlo_value all = hlo_concatenate(&l->hlo, words.word, 4, 2);
    all = hlo_reshape(&l->hlo, all, HLO_SHAPE(l->batch, 4 * count));
    return hlo_reshape(&l->hlo, hlo_slice(&l->hlo, all, 1, 0, elements, 1), shape);
}

static struct hlo_value drop(struct lowering *l, unsigned number, struct hlo_value x)
{
    float rate = (float)lowered_layer(l, number)->spec.rate;
    struct hlo_value limit = hlo_constant(&l->hlo, HLO_UINT32, x.shape, dropout_limit(rate));
    struct hlo_value is_dropped = l->layers[number].kept[0];
    if (is_dropped.id == 0)
        is_dropped = l->layers[number].kept[0] =
            hlo_compare(&l->hlo, "LT", dropout_words_of(l, number, x.shape), limit);
    struct hlo_value zero = hlo_constant(&l->hlo, HLO_FLOAT32, x.shape, 0);
    return hlo_select(&l->hlo, is_dropped, zero, scaled(l, x, (double)(1.0f / (1.0f - rate))));
}

static struct hlo_value dropout_forward(struct lowering *l, unsigned number)
{
    struct hlo_value x = lowered_input(l, number, 0);
    return l->evaluation || lowered_layer(l, number)->spec.rate <= 0 ? x : drop(l, number, x);
}

static void dropout_backward(struct lowering *l, unsigned number, struct hlo_value dy)
{
    bool drops = lowered_layer(l, number)->spec.rate > 0;
    lowering_add_input_gradient(l, number, 0, drops ? drop(l, number, dy) : dy);
}

const struct layer_lowering lowering_dropout = {dropout_forward, dropout_backward};
