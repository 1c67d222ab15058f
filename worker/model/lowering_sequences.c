/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers embeddings, attention and normalisations.
 */
#include <math.h>

#include "worker/model/lowering_internal.h"
#include "worker/model/normalisation.h"

#define EPSILON 1e-5 /* of both normalisations, as operations.h says */

/* ---------------------------------------------------------------- embedding */

enum { TOKEN, POSITION };

static struct hlo_value embedding_forward(struct lowering *l, unsigned number)
{
    struct hlo_value rows = hlo_gather_rows(&l->hlo, lowered_parameter(l, number, TOKEN), lowered_input(l, number, 0));
    struct hlo_value position = lowered_parameter(l, number, POSITION);
    return hlo_binary(&l->hlo, "add", rows, hlo_broadcast(&l->hlo, position, rows.shape, HLO_DIMS(1, 2)));
}

static void embedding_backward(struct lowering *l, unsigned number, struct hlo_value dy)
{
    struct hlo_value zeros = hlo_constant(&l->hlo, HLO_FLOAT32, lowered_parameter(l, number, TOKEN).shape, 0);
    lowering_add_parameter_gradient(l, number, TOKEN, hlo_add_to_rows(&l->hlo, zeros, lowered_input(l, number, 0), dy));
    lowering_add_parameter_gradient(l, number, POSITION, hlo_reduce(&l->hlo, "add", dy, HLO_DIMS(0)));
}

const struct layer_lowering lowering_embedding = {embedding_forward, embedding_backward};

/* ---------------------------------------------------------------- attention */

/* Batches by example and head: of [B,T,NH,D], and of a matrix [B,NH,T,T]. */
#define OF_HEADS HLO_DIMS(0, 2)
#define OF_MATRIX HLO_DIMS(0, 1)

struct attention {
    int64_t t, c, heads, width;
    double scale;
};

static struct attention attention_of(const struct layer *layer)
{
    int64_t c = layer->output.dims[1], width = c / layer->spec.heads;
    return (struct attention){layer->output.dims[0], c, layer->spec.heads, width, 1 / sqrt((double)width)};
}

/* [B,T,C] as [B,T,NH,D], an operand of a product. */
static struct hlo_value as_heads(struct lowering *l, const struct attention *a, struct hlo_value x)
{
    return lowering_rounded(l, hlo_reshape(&l->hlo, x, HLO_SHAPE(l->batch, a->t, a->heads, a->width)));
}

/* Queries, keys or values (0, 1, 2) of the layer's input [B,T,3C]. */
static struct hlo_value part_of(struct lowering *l, unsigned number, const struct attention *a, int64_t part)
{
    return as_heads(l, a, hlo_slice(&l->hlo, lowered_input(l, number, 0), 2, part * a->c, (part + 1) * a->c, 1));
}

/* [B,NH,T,D] as [B,T,C]. */
static struct hlo_value from_heads(struct lowering *l, const struct attention *a, struct hlo_value x)
{
    struct hlo_value turned = hlo_transpose(&l->hlo, x, HLO_DIMS(0, 2, 1, 3));
    return hlo_reshape(&l->hlo, turned, HLO_SHAPE(l->batch, a->t, a->c));
}

/* For all pairs of rows of a and b [B,T,NH,D]: [B,NH,T,T]. */
static struct hlo_value against_all(struct lowering *l, struct hlo_value a, struct hlo_value b)
{
    return hlo_dot(
        &l->hlo, a, b,
        &(struct hlo_product){
            .batch_a = OF_HEADS, .batch_b = OF_HEADS, .contracted_a = HLO_DIMS(3), .contracted_b = HLO_DIMS(3)});
}

/* The rows of x [B,T,NH,D] summed with the weights of matrix[B,NH,T,T], over its dimension `over` (2 or 3): [B,NH,T,D]. */
static struct hlo_value weighted(struct lowering *l, struct hlo_value matrix, unsigned over, struct hlo_value x)
{
    return hlo_dot(
        &l->hlo, matrix, x,
        &(struct hlo_product){
            .batch_a = OF_MATRIX, .batch_b = OF_HEADS, .contracted_a = HLO_DIMS(over), .contracted_b = HLO_DIMS(1)});
}

static struct hlo_value along_keys(struct lowering *l, struct hlo_value x, struct hlo_shape shape)
{
    return hlo_broadcast(&l->hlo, x, shape, HLO_DIMS(0, 1, 2));
}

/* The softmax over the keys at or before each query. */
static struct hlo_value softmax_of(struct lowering *l, struct hlo_value scores)
{
    struct hlo *h = &l->hlo;
    struct hlo_value sees =
        hlo_compare(h, "LE", hlo_iota(h, HLO_INT32, scores.shape, 3), hlo_iota(h, HLO_INT32, scores.shape, 2));
    struct hlo_value never = hlo_constant(h, HLO_FLOAT32, scores.shape, -INFINITY);
    struct hlo_value seen = hlo_select(h, sees, scores, never);
    struct hlo_value largest = along_keys(l, hlo_reduce(h, "maximum", seen, HLO_DIMS(3)), scores.shape);
    struct hlo_value powers = hlo_unary(h, "exponential", hlo_binary(h, "subtract", seen, largest));
    struct hlo_value sums = along_keys(l, hlo_reduce(h, "add", powers, HLO_DIMS(3)), scores.shape);
    return hlo_binary(h, "divide", powers, sums);
}

static struct hlo_value attention_forward(struct lowering *l, unsigned number)
{
    struct attention a = attention_of(lowered_layer(l, number));
    struct hlo_value queries = part_of(l, number, &a, 0), keys = part_of(l, number, &a, 1);
    struct hlo_value scores = hlo_binary_constant(&l->hlo, "multiply", against_all(l, queries, keys), a.scale);
    struct hlo_value weights = l->layers[number].kept[0] = softmax_of(l, scores);
    struct hlo_value values = part_of(l, number, &a, 2);
    return from_heads(l, &a, weighted(l, lowering_rounded(l, weights), 3, values));
}

/* With P the softmax and dP = dY V^T: dV = P^T dY, dS = P (dP - rowsum(dP P)), dQ = dS K, dK = dS^T Q. */
static void attention_backward(struct lowering *l, unsigned number, struct hlo_value dy)
{
    struct hlo *h = &l->hlo;
    struct attention a = attention_of(lowered_layer(l, number));
    struct hlo_value weights = l->layers[number].kept[0], dheads = as_heads(l, &a, dy);
    struct hlo_value dweights = against_all(l, dheads, part_of(l, number, &a, 2));
    struct hlo_value sums = hlo_reduce(h, "add", hlo_binary(h, "multiply", dweights, weights), HLO_DIMS(3));
    struct hlo_value apart = hlo_binary(h, "subtract", dweights, along_keys(l, sums, weights.shape));
    struct hlo_value dscores = hlo_binary_constant(h, "multiply", hlo_binary(h, "multiply", weights, apart), a.scale);
    struct hlo_value matrix = lowering_rounded(l, dscores);
    struct hlo_value parts[3] = {
        from_heads(l, &a, weighted(l, matrix, 3, part_of(l, number, &a, 1))),
        from_heads(l, &a, weighted(l, matrix, 2, part_of(l, number, &a, 0))),
        from_heads(l, &a, weighted(l, lowering_rounded(l, weights), 2, dheads)),
    };
    lowering_add_input_gradient(l, number, 0, hlo_concatenate(h, parts, 3, 2));
}

const struct layer_lowering lowering_attention = {attention_forward, attention_backward};

/* ---------------------------------------------------------------- layer norm */

enum { WEIGHT, BIAS, RUNNING_MEAN, RUNNING_VARIANCE };
enum { KEPT_NORMALISED, KEPT_RSTD, KEPT_MASK, KEPT_COUNT };

/* 1 / sqrt(variance + epsilon) */
static struct hlo_value rstd_of(struct lowering *l, struct hlo_value variance)
{
    return hlo_unary(&l->hlo, "rsqrt", hlo_binary_constant(&l->hlo, "add", variance, EPSILON));
}

/* normalised weight + bias, along the last dimension. */
static struct hlo_value scale_and_shift(struct lowering *l, unsigned number, struct hlo_value normalised)
{
    struct hlo_value weight = lowering_along_last(l, lowered_parameter(l, number, WEIGHT), normalised.shape);
    struct hlo_value bias = lowering_along_last(l, lowered_parameter(l, number, BIAS), normalised.shape);
    return hlo_binary(&l->hlo, "add", lowering_times(l, normalised, weight), bias);
}

/* The mean over the last dimension of x[R,C], repeated. */
static struct hlo_value row_mean(struct lowering *l, struct hlo_value x)
{
    struct hlo_value sums = hlo_reduce(&l->hlo, "add", x, HLO_DIMS(1));
    struct hlo_value means = hlo_binary_constant(&l->hlo, "multiply", sums, 1 / (double)x.shape.dims[1]);
    return hlo_broadcast(&l->hlo, means, x.shape, HLO_DIMS(0));
}

static struct hlo_value layer_norm_forward(struct lowering *l, unsigned number)
{
    struct lowered_layer *layer = &l->layers[number];
    struct hlo_value input = lowered_input(l, number, 0), x = lowering_rows(l, input);
    struct hlo_value distance = hlo_binary(&l->hlo, "subtract", x, row_mean(l, x));
    layer->kept[KEPT_RSTD] = rstd_of(l, row_mean(l, lowering_times(l, distance, distance)));
    layer->kept[KEPT_NORMALISED] = lowering_times(l, distance, layer->kept[KEPT_RSTD]);
    return hlo_reshape(&l->hlo, scale_and_shift(l, number, layer->kept[KEPT_NORMALISED]), input.shape);
}

static void give_weight_and_bias(struct lowering *l, unsigned number, struct hlo_value dy, struct hlo_value normalised)
{
    lowering_add_parameter_gradient(l, number, WEIGHT, lowering_sum_to_last(l, lowering_times(l, dy, normalised)));
    lowering_add_parameter_gradient(l, number, BIAS, lowering_sum_to_last(l, dy));
}

/* With g = dy weight: dx = rstd (g - mean(g) - normalised mean(g normalised)). */
static void layer_norm_backward(struct lowering *l, unsigned number, struct hlo_value dy)
{
    struct hlo *h = &l->hlo;
    struct hlo_value normalised = l->layers[number].kept[KEPT_NORMALISED], rows = lowering_rows(l, dy);
    give_weight_and_bias(l, number, rows, normalised);
    if (!lowering_wants_gradient(l, number, 0))
        return;
    struct hlo_value g =
        lowering_times(l, rows, lowering_along_last(l, lowered_parameter(l, number, WEIGHT), rows.shape));
    struct hlo_value slope = lowering_times(l, normalised, row_mean(l, lowering_times(l, g, normalised)));
    struct hlo_value apart = hlo_binary(h, "subtract", hlo_binary(h, "subtract", g, row_mean(l, g)), slope);
    struct hlo_value dx = lowering_times(l, apart, l->layers[number].kept[KEPT_RSTD]);
    lowering_add_input_gradient(l, number, 0, hlo_reshape(h, dx, dy.shape));
}

const struct layer_lowering lowering_layer_norm = {layer_norm_forward, layer_norm_backward};

/* ---------------------------------------------------------------- batch norm */

static struct hlo_value along_columns(struct lowering *l, struct hlo_value x, struct hlo_value rows)
{
    return lowering_along_last(l, x, rows.shape);
}

static struct hlo_value centred(struct lowering *l, struct hlo_value x, struct hlo_value mean)
{
    return hlo_binary(&l->hlo, "subtract", x, along_columns(l, mean, x));
}

static struct hlo_value infer(struct lowering *l, unsigned number, struct hlo_value x)
{
    struct hlo_value rstd = rstd_of(l, lowered_parameter(l, number, RUNNING_VARIANCE));
    struct hlo_value distance = centred(l, x, lowered_parameter(l, number, RUNNING_MEAN));
    return scale_and_shift(l, number, lowering_times(l, distance, along_columns(l, rstd, x)));
}

/* The example's weight, 1 or 0, for each element of rows[R,C]: examples that fill up a call take no part in its statistics. */
static struct hlo_value mask_of(struct lowering *l, struct hlo_value rows)
{
    int64_t each = rows.shape.dims[0] / l->batch;
    struct hlo_value all =
        hlo_broadcast(&l->hlo, l->weight, HLO_SHAPE(l->batch, each, rows.shape.dims[1]), HLO_DIMS(0));
    return hlo_reshape(&l->hlo, all, rows.shape);
}

/* The rows of x[R,C] that take part, for each column. Counted by example, because a float32 does not count single rows beyond 2^24. */
static struct hlo_value count_rows(struct lowering *l, struct hlo_value x)
{
    int64_t each = x.shape.dims[0] / l->batch;
    struct hlo_value examples = hlo_reduce(&l->hlo, "add", l->weight, HLO_DIMS(0));
    struct hlo_value rows = hlo_binary_constant(&l->hlo, "multiply", examples, (double)each);
    return hlo_broadcast(&l->hlo, rows, HLO_SHAPE(x.shape.dims[1]), HLO_NO_DIMS);
}

/* Sums x[R,C] down its columns and divides by `count`[C]. */
static struct hlo_value column_mean(struct lowering *l, struct hlo_value x, struct hlo_value count)
{
    return hlo_binary(&l->hlo, "divide", hlo_reduce(&l->hlo, "add", x, HLO_DIMS(0)), count);
}

/* running - momentum (running - batch) */
static void update_statistic(struct lowering *l, unsigned number, unsigned p, struct hlo_value batch)
{
    double momentum = lowered_layer(l, number)->spec.momentum;
    struct hlo_value running = lowered_parameter(l, number, p);
    struct hlo_value step = hlo_binary_constant(&l->hlo, "multiply", hlo_binary(&l->hlo, "subtract", running, batch),
                                                (double)(float)(momentum > 0 ? momentum : NORMALISATION_MOMENTUM));
    lowering_set_statistic(l, number, p, hlo_binary(&l->hlo, "subtract", running, step));
}

/* The running variance follows the unbiased one: squares / (count - 1), or the biased one of a single row. */
static struct hlo_value unbiased(struct lowering *l, struct hlo_value variance, struct hlo_value count)
{
    struct hlo_value others =
        hlo_binary_constant(&l->hlo, "maximum", hlo_binary_constant(&l->hlo, "subtract", count, 1), 1);
    struct hlo_value factor = hlo_binary_constant(&l->hlo, "maximum", hlo_binary(&l->hlo, "divide", count, others), 1);
    return lowering_times(l, variance, factor);
}

static struct hlo_value batch_norm_forward(struct lowering *l, unsigned number)
{
    struct lowered_layer *layer = &l->layers[number];
    struct hlo_value input = lowered_input(l, number, 0), x = lowering_rows(l, input);
    if (l->evaluation)
        return hlo_reshape(&l->hlo, infer(l, number, x), input.shape);
    struct hlo_value mask = layer->kept[KEPT_MASK] = mask_of(l, x);
    struct hlo_value count = layer->kept[KEPT_COUNT] = count_rows(l, x);
    struct hlo_value mean = column_mean(l, lowering_times(l, x, mask), count);
    struct hlo_value distance = lowering_times(l, centred(l, x, mean), mask);
    struct hlo_value variance = column_mean(l, lowering_times(l, distance, distance), count);
    layer->kept[KEPT_RSTD] = rstd_of(l, variance);
    layer->kept[KEPT_NORMALISED] = lowering_times(l, distance, along_columns(l, layer->kept[KEPT_RSTD], x));
    update_statistic(l, number, RUNNING_MEAN, mean);
    update_statistic(l, number, RUNNING_VARIANCE, unbiased(l, variance, count));
    return hlo_reshape(&l->hlo, scale_and_shift(l, number, layer->kept[KEPT_NORMALISED]), input.shape);
}

/* dx = weight rstd (dy - mean(dy) - normalised mean(dy normalised)) */
static void batch_norm_backward(struct lowering *l, unsigned number, struct hlo_value dy)
{
    struct hlo *h = &l->hlo;
    const struct lowered_layer *layer = &l->layers[number];
    struct hlo_value normalised = layer->kept[KEPT_NORMALISED], rows = lowering_rows(l, dy);
    give_weight_and_bias(l, number, rows, normalised);
    if (!lowering_wants_gradient(l, number, 0))
        return;
    struct hlo_value mean = column_mean(l, rows, layer->kept[KEPT_COUNT]);
    struct hlo_value slope = column_mean(l, lowering_times(l, rows, normalised), layer->kept[KEPT_COUNT]);
    struct hlo_value apart =
        hlo_binary(h, "subtract", centred(l, rows, mean), lowering_times(l, normalised, along_columns(l, slope, rows)));
    struct hlo_value factor = lowering_times(l, lowered_parameter(l, number, WEIGHT), layer->kept[KEPT_RSTD]);
    struct hlo_value dx =
        lowering_times(l, lowering_times(l, apart, along_columns(l, factor, rows)), layer->kept[KEPT_MASK]);
    lowering_add_input_gradient(l, number, 0, hlo_reshape(h, dx, dy.shape));
}

const struct layer_lowering lowering_batch_norm = {batch_norm_forward, batch_norm_backward};
