/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines what the files of the lowering (lowering.h) share: the function that is being written, and how each kind of layer adds its
 * forward and backward operations to it. Letters in comments are those of operations.h: B examples, T positions, C channels or width.
 */
#ifndef COXSWAIN_MODEL_LOWERING_INTERNAL_H
#define COXSWAIN_MODEL_LOWERING_INTERNAL_H

#include "worker/model/graph_internal.h"
#include "worker/xla/stablehlo.h"

#define LOWERED_KEPT_MAX 4

/* A layer whose operations have been written. */
struct lowered_layer {
    struct hlo_value output;
    struct hlo_value gradient;               /* of the output; id 0: none yet */
    struct hlo_value kept[LOWERED_KEPT_MAX]; /* what its backward operations read */
};

struct lowering {
    struct hlo hlo;
    const struct graph *graph;
    int64_t batch;
    bool evaluation;
    bool rounds;                              /* to bfloat16 */
    struct hlo_value *parameters, *gradients; /* by the tensor's number in the layout; of statistics, the new values */
    struct hlo_value input, target, weight, seed;
    struct lowered_layer *layers;
};

/* Return a layer, its input number `input`, and its parameter number `p`. */
static inline const struct layer *lowered_layer(const struct lowering *l, unsigned number)
{
    return &l->graph->nodes[number].layer;
}
struct hlo_value lowered_input(const struct lowering *l, unsigned number, unsigned input);
struct hlo_value lowered_parameter(const struct lowering *l, unsigned number, unsigned p);
/* Returns whether anything reads the gradient of that input. */
bool lowering_wants_gradient(const struct lowering *l, unsigned number, unsigned input);
/* Adds to the gradient of the layer's input. */
void lowering_add_input_gradient(struct lowering *l, unsigned number, unsigned input, struct hlo_value dx);
/* Adds to the gradient of the layer's parameter. */
void lowering_add_parameter_gradient(struct lowering *l, unsigned number, unsigned p, struct hlo_value gradient);
/* Sets a statistic's new value. */
void lowering_set_statistic(struct lowering *l, unsigned number, unsigned p, struct hlo_value value);
/* Returns float32 values rounded to bfloat16, if the model's precision is that: outputs of layers, their gradients, and operands of products.
 * The type stays float32: XLA's CPU compiler has no products of bfloat16 with sums in float32, and TPUs multiply float32 of default precision
 * as bfloat16. */
struct hlo_value lowering_rounded(struct lowering *l, struct hlo_value x);
/* Returns the shape of a layer's input or output in a call: the batch, then the example. */
struct hlo_shape lowering_shape(const struct lowering *l, const struct layer_shape *example);
/* Returns x[..., C] as [rows, C]. */
struct hlo_value lowering_rows(struct lowering *l, struct hlo_value x);
/* Repeats x[C] to `shape`, whose last dimension is C. */
struct hlo_value lowering_along_last(struct lowering *l, struct hlo_value x, struct hlo_shape shape);
/* Returns a x b, element by element. */
static inline struct hlo_value lowering_times(struct lowering *l, struct hlo_value a, struct hlo_value b)
{
    return hlo_binary(&l->hlo, "multiply", a, b);
}
/* Adds the layer's parameter number `p` to y along the last dimension, if the layer has a bias. */
struct hlo_value lowering_add_bias(struct lowering *l, unsigned number, unsigned p, struct hlo_value y);
/* Sums x over all dimensions but the last. */
struct hlo_value lowering_sum_to_last(struct lowering *l, struct hlo_value x);

/* How a kind of layer is lowered: `forward` returns the output; `backward` reads the output's gradient `dy` and gives those of inputs and
 * parameters. */
struct layer_lowering {
    struct hlo_value (*forward)(struct lowering *l, unsigned number);
    void (*backward)(struct lowering *l, unsigned number, struct hlo_value dy);
};
extern const struct layer_lowering lowering_dense, lowering_conv2d, lowering_max_pool, lowering_average_pool,
    lowering_global_average_pool, lowering_relu, lowering_gelu, lowering_tanh, lowering_flatten, lowering_layer_norm,
    lowering_embedding, lowering_attention, lowering_add, lowering_batch_norm, lowering_shortcut, lowering_dropout,
    lowering_concat;

#endif
