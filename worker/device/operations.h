/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the operations that devices compute: one argument struct each, launched on a stream by
 * `device_<name>(stream, &arguments)`. The layers of models, the optimizers and the reductions
 * launch them. Arguments are copied at the launch; what they point to is device memory and must
 * stay until the stream has executed the operation.
 *
 * Tensors are row-major; images are N H W C; tokens and classes are int32. Index names follow the
 * papers: B examples, T positions, C channels or width, NH heads. M, N, K are those of a matrix
 * product. A result depends on shapes, inputs and instruction set only, never on the number of
 * threads.
 *
 * The tensors that layers pass to each other (inputs, outputs, their gradients, logits) and the
 * weights and biases of dense layers and convolutions are stored as the launch says (enum stored).
 * All other tensors (parameters of other layers, gradients of parameters, statistics, targets) are
 * always float32, and so is all arithmetic.
 *
 * `tf32` allows a GPU to round the factors of a float32 product to TF32 (ten bits of fraction) for
 * its tensor cores; sums stay float32. CPUs and products of 16-bit values ignore it.
 *
 * `accumulate` adds the finished result to what the memory holds, so that adding the gradients of a
 * batch's shards one by one gives the bits of adding finished gradients.
 */
#ifndef COXSWAIN_DEVICE_OPERATIONS_H
#define COXSWAIN_DEVICE_OPERATIONS_H

#include <stdbool.h>
#include <stdint.h>

/* How values lie in memory. With STORED_BFLOAT16 (the upper half of a float32) and
 * STORED_FLOAT16 a value takes two bytes and is rounded to nearest when it is written.
 * device_stores says whether a device has them. */
enum stored { STORED_FLOAT32, STORED_BFLOAT16, STORED_FLOAT16 };
static inline int64_t stored_bytes(enum stored stored)
{
    return stored == STORED_FLOAT32 ? 4 : 2;
}
/* One value of such a tensor. It is a float with STORED_FLOAT32 only; otherwise pointers to it
 * are to two-byte values and must not be indexed as floats. Some structs below still declare
 * such tensors as float pointers; their comments call them stored values. */
typedef float stored_value;

enum activation { ACTIVATION_NONE, ACTIVATION_RELU };
struct step_values;

/* Returns the distance between the beginnings of two rows of a matrix, in values; `row` 0: the
 * rows are packed. The gap between rows is neither read nor written. On GPUs, products are
 * faster if rows begin at multiples of 16 bytes. */
static inline int64_t row_or_packed(int64_t row, int64_t columns)
{
    return row > 0 ? row : columns;
}

/* y[M,N] = activation(x[M,K] w[N,K]^T + bias[N]). The bias may be NULL. If `gelu` [M,N] is not
 * NULL, it receives the GELU of y; a GPU may compute it from y before y is rounded. */
struct dense_forward {
    int64_t m, n, k;
    const stored_value *x, *weight, *bias;
    stored_value *y;
    enum activation activation;
    bool tf32;
    stored_value *gelu;
    int64_t y_row; /* not with `gelu` */
};

/* dx[M,K] = dy[M,N] w[N,K]. With `relu_output` (x itself, [M,K]), dx is zero where that is not
 * positive. With `gelu_input` [M,K], x is the GELU of it, and dx becomes the gradient of
 * gelu_input. */
struct dense_backward_data {
    int64_t m, n, k;
    const stored_value *dy, *weight, *relu_output;
    stored_value *dx;
    bool tf32;
    const stored_value *gelu_input;
    int64_t dy_row;
};

/* dw[N,K] = dy[M,N]^T x[M,K]; db[N] = column sums of dy (dbias NULL: not computed). */
struct dense_backward_weight {
    int64_t m, n, k;
    const stored_value *dy, *x;
    float *dweight, *dbias;
    bool accumulate, tf32;
    int64_t dy_row;
};

/* A square-kernel convolution: x[B,H,W,C] -> y[B,OH,OW,O]; weights are O C KH KW. */
struct conv2d_shape {
    int64_t b, h, w, c, o, kernel, stride, padding, oh, ow;
};

struct conv2d_forward {
    struct conv2d_shape shape;
    const stored_value *x, *weight, *bias;
    stored_value *y;
    float *workspace; /* conv2d_workspace() floats */
    enum activation activation;
    bool tf32;
};

struct conv2d_backward_data {
    struct conv2d_shape shape;
    const stored_value *dy, *weight, *relu_output;
    stored_value *dx;
    float *workspace;
    bool tf32;
};

struct conv2d_backward_weight {
    struct conv2d_shape shape;
    const stored_value *dy, *x;
    float *dweight, *dbias;
    float *workspace;
    bool accumulate, tf32;
};

/* Square windows. Padding never wins a maximum; a NaN always does. */
struct pool_shape {
    int64_t b, h, w, c, size, stride, padding, oh, ow;
};

struct max_pool_forward {
    struct pool_shape shape;
    const stored_value *x;
    stored_value *y;
};

/* The first element of a window that equals its maximum gets the gradient. With `relu`, x is a
 * rectifier's output, and only positive elements get it, which makes dx the gradient of the
 * rectifier's input. */
struct max_pool_backward {
    struct pool_shape shape;
    const stored_value *x, *y, *dy;
    stored_value *dx;
    bool relu;
};

/* Averages over size x size elements; padding counts as zeros. */
struct average_pool_forward {
    struct pool_shape shape;
    const stored_value *x;
    stored_value *y;
};

struct average_pool_backward {
    struct pool_shape shape;
    const stored_value *dy;
    stored_value *dx;
};

/* Elementwise; y may be x. A rectifier, here and as an activation, keeps NaN. GELU is the tanh
 * form (Hendrycks and Gimpel 2016), as in GPT-2. */
struct relu_forward {
    int64_t count;
    const stored_value *x;
    stored_value *y;
};
struct relu_backward {
    int64_t count;
    const stored_value *y, *dy;
    stored_value *dx;
};
struct gelu_forward {
    int64_t count;
    const stored_value *x;
    stored_value *y;
};
struct gelu_backward {
    int64_t count;
    const stored_value *x, *dy;
    stored_value *dx;
};
struct tanh_forward {
    int64_t count;
    const stored_value *x;
    stored_value *y;
};
struct tanh_backward {
    int64_t count;
    const stored_value *y, *dy;
    stored_value *dx;
};

/* y = activation(a + b) */
struct add_forward {
    int64_t count;
    const stored_value *a, *b;
    stored_value *y;
    enum activation activation;
};

/* The parameter-free shortcut of a residual block that changes the shape (He et al. 2016, option
 * A): every stride-th pixel of x[B,H,W,C], with zeros as the additional channels: y[B,OH,OW,O],
 * O >= C, OH = ceil(H / stride). */
struct shortcut_shape {
    int64_t b, h, w, c, o, stride;
};
struct shortcut_forward {
    struct shortcut_shape shape;
    const stored_value *x;
    stored_value *y;
};
struct shortcut_backward {
    struct shortcut_shape shape;
    const stored_value *dy;
    stored_value *dx;
};

/* Dropout (Srivastava et al. 2014), forward and backward: y = x / (1 - rate), or 0 if the
 * element's random word is below a limit (dropout_word.h); y may be x. The word depends only on
 * key, layer, step, the example's number in the global batch (first_example + i) and the
 * element's number in the example. */
struct dropout {
    int64_t examples, elements; /* `elements` per example, below 2^32 */
    const stored_value *x;
    stored_value *y;
    float rate;
    uint64_t key;
    uint32_t layer, step;
    int64_t first_example;
    const struct step_values *values; /* NULL, or replaces `step` */
};

/* Layer normalisation (Ba et al. 2016) over the last axis of x[rows,C], epsilon 1e-5. mean and
 * rstd have `rows` elements. x, y, dy, dx, past and sum are stored values. With `past` [rows,C],
 * the input is x + past, rounded as it is stored, and is written to `sum` [rows,C]. */
struct layer_norm_forward {
    int64_t rows, c;
    const float *x, *weight, *bias;
    float *y, *mean, *rstd;
    const float *past;
    float *sum;
};
struct layer_norm_backward {
    int64_t rows, c;
    const float *x, *weight, *mean, *rstd, *dy;
    float *dx, *dweight, *dbias;
    float *workspace; /* layer_norm_workspace() floats */
    bool accumulate;
    bool add; /* add to the values in dx, which must not be dy */
};

/* Batch normalisation (Ioffe and Szegedy 2015), epsilon 1e-5: normalises each column of
 * x[rows,C] over all rows, with the biased variance. mean, rstd and variance have C elements;
 * variance is the unbiased one (divided by rows - 1), as PyTorch uses for running statistics. x,
 * y, dy, dx and the [rows,C] tensors below are stored values. With `past` [rows,C], y is
 * activation(normalised x + past), with the bits of two launches: the normalised x is rounded as
 * it would have been stored. */
/* With an exchange, the statistics and the sums of the backward pass are those of the rows of
 * all shards (CPUs only). */
struct shard_exchange;
struct batch_norm_peers {
    struct shard_exchange *exchange; /* NULL: none */
    unsigned shard, layer;
};
struct batch_norm_forward {
    int64_t rows, c;
    const float *x, *weight, *bias;
    float *y, *mean, *rstd, *variance;
    float *workspace; /* batch_norm_workspace() floats */
    enum activation activation;
    struct batch_norm_peers peers;
    const float *past;
};
/* Computes the gradients, and in `mean_step` and `variance_step` what this batch subtracts from
 * the running statistics: share * momentum * (running - batch's); 0 without rows.
 *
 * Can also compute the backward pass of a rectifier after the normalisation, with the bits of a
 * separate relu_backward. If the rectifier was the normalisation's own activation, set
 * `activation`: the rectified values are recomputed from x, `weight` and `bias`. If it rectified
 * a sum that includes the normalised values, set `relu_output` [rows,C]: `others` ([rows,C] or
 * NULL) is added to dy, dy is kept where relu_output is positive, and the result, the gradient
 * of each summand, is written to `masked`, which may be dy. Never set both. */
struct batch_norm_backward {
    int64_t rows, c;
    const float *x, *weight, *mean, *rstd, *variance, *dy;
    float *dx; /* NULL: not computed */
    float *dweight, *dbias;
    const float *running_mean, *running_variance;
    float *mean_step, *variance_step;
    float momentum, share;
    float *workspace;
    bool accumulate;
    struct batch_norm_peers peers;
    const float *bias; /* with `activation` */
    enum activation activation;
    const float *relu_output, *others;
    float *masked;
};
/* Normalises with the running statistics instead of the batch's. */
struct batch_norm_inference {
    int64_t rows, c;
    const float *x, *weight, *bias, *running_mean, *running_variance;
    float *y;
    enum activation activation;
    const float *past; /* as for batch_norm_forward */
};

/* y[B,T,C] = token[V,C][tokens[B,T]] + position[T,C]; y and dy are stored values. Tokens outside
 * 0..V-1 fail the stream. */
struct embedding_forward {
    int64_t b, t, c, vocabulary;
    const int32_t *tokens;
    const float *token, *position;
    float *y;
};
struct embedding_backward {
    int64_t b, t, c, vocabulary;
    const int32_t *tokens;
    const float *dy;
    float *dtoken, *dposition;
    bool accumulate;
    bool token_begun; /* dtoken already holds a part of its gradient (from a tied output layer): always add to it */
};

/* Causal softmax attention (Vaswani et al. 2017) of qkv[B,T,3C], heads of C/NH; qkv, y and their
 * gradients are stored values. `logsumexp` [B,NH,T] is kept for the backward pass. Rows of y and
 * logsumexp before `first` are not needed: they are left as they are, or computed again. */
struct attention_forward {
    int64_t b, t, c, heads;
    const float *qkv;
    float *y, *logsumexp;
    int64_t first;
};
struct attention_backward {
    int64_t b, t, c, heads;
    const float *qkv, *y, *dy, *logsumexp;
    float *dqkv;
};

/* The sums of one pass, in shared memory (device.h). `count` counts examples, or target tokens. */
struct loss_sums {
    double loss;
    int64_t correct;
    int64_t count;
};

/* Softmax cross-entropy over logits[rows,classes]: dlogits = (softmax - one hot) * scale; it is
 * NULL in an evaluation, and may be logits. logits and dlogits are stored values. `workspace`
 * has 2 doubles per row. Targets outside 0..classes-1 fail the stream. If a batch is computed in
 * parts, the last part writes the sums of all parts, in the order of a single launch. */
struct softmax_cross_entropy {
    int64_t rows, classes;
    const float *logits;
    const int32_t *targets;
    float scale;
    float *dlogits;
    double *workspace;
    struct loss_sums *sums;           /* overwritten; NULL: a later part writes them */
    int64_t earlier;                  /* rows of earlier parts; their workspace lies before this part's */
    const struct step_values *values; /* NULL, or `scale` is multiplied by its loss_scale */
    int64_t row;                      /* distance between rows of logits and of dlogits (row_or_packed) */
};

/* The loss of a row is the mean over its `width` outputs of (y - target)^2; dy is its gradient
 * times `scale`. y and dy are stored values. */
struct mean_squared_error {
    int64_t rows, width;
    const float *y, *targets;
    float scale;
    float *dy;
    double *workspace;
    struct loss_sums *sums;
    const struct step_values *values; /* as for softmax_cross_entropy */
};

/* The factors of an update that depend on the learning rate and, for AdamW, on the number of the
 * step. */
struct update_factors {
    float rate;
    float rate_over_correction1; /* rate / (1 - beta1^step) */
    float inverse_root_correction2;
    float keep; /* 1 - rate * weight_decay */
};
/* Values that change from step to step or that the device itself computes. Launches read them
 * from device memory, so that the host can queue work before it knows them, and replay recorded
 * launches unchanged. */
struct step_values {
    struct update_factors factors;
    uint32_t pass;      /* the step that the next passes compute, for dropouts */
    float loss_scale;   /* of the next passes; 1 if losses are not scaled. judge_step updates it */
    int32_t good_steps; /* steps since loss_scale changed; -1: it is fixed */
    /* Set by judge_step: */
    float gradient_scale; /* clipping factor divided by the loss scale */
    int32_t refused; /* the update must change nothing: the loss or the norm is not finite, or the stream has failed */
};

/* Sets all step values that judge_step does not set. */
struct begin_step {
    struct update_factors factors;
    uint32_t pass;
    float loss_scale; /* 0: losses are not scaled */
    int32_t good_steps;
    struct step_values *values;
};

/* Judges a step after its passes: computes the gradient's norm, without the loss scale, from its
 * block sums, added in order; the factor that clips it to `limit` (0: no clipping); whether the
 * update may be applied; and the loss scale of the next passes. Also writes the norm and the
 * losses to shared memory for the host. */
struct judge_step {
    int64_t blocks;
    const double *block_sums; /* square_sums */
    int64_t passes;
    const struct loss_sums *sums;
    double limit;
    struct step_values *values;
    double *ret_norm;           /* shared memory */
    struct loss_sums *ret_sums; /* shared memory: the sums of each pass */
};

/* g' = gradient * gradient_scale + weight_decay * p; v = momentum * v + g'; p -= rate * v.
 * velocity NULL: p -= rate * g'. */
struct sgd_update {
    int64_t count;
    float *parameters, *velocity;
    const float *gradients;
    float rate, momentum, weight_decay, gradient_scale;
    const struct step_values *values; /* NULL, or replaces rate and gradient_scale */
};

/* AdamW (Loshchilov and Hutter 2019): weight decay is decoupled from the moments. `step` counts
 * from 1, for the bias corrections. */
struct adamw_update {
    int64_t count;
    float *parameters, *m, *v;
    const float *gradients;
    float rate, beta1, beta2, epsilon, weight_decay, gradient_scale;
    int64_t step;
    const struct step_values *values; /* NULL, or replaces rate, gradient_scale, weight_decay and step */
};

/* Subtracts `steps` from running statistics. */
struct statistics_update {
    int64_t count;
    float *statistics;
    const float *steps;
    const struct step_values *values; /* NULL, or nothing changes if it is refused */
};

/* sums[i] = sum of squares of block i of SQUARE_SUM_BLOCK elements (the last may be short). */
#define SQUARE_SUM_BLOCK 16384
struct square_sums {
    int64_t count;
    const float *x;
    double *sums;
};

struct fill {
    int64_t count;
    float value;
    float *x;
};
struct scale {
    int64_t count;
    float factor;
    float *x;
};
/* y = the bfloat16 nearest to x, ties to even. x is float32; y is a stored value, and may be x
 * if values are stored as float32. */
struct round_bfloat16 {
    int64_t count;
    const float *x;
    float *y;
};
/* y = the float16 nearest to x (float16.h); the rest as for round_bfloat16. */
struct round_float16 {
    int64_t count;
    const float *x;
    float *y;
};
/* y += factor * x; both are stored values. */
struct axpy {
    int64_t count;
    float factor;
    const float *x;
    float *y;
};
/* Adds vectors in place, one pair after the other: into += from. Vectors have `count` floats;
 * any two are identical or disjoint. */
#define MERGE_PAIRS_MAX 7
struct merge_vectors {
    int64_t count;
    int pair_count;
    struct merge_pair {
        float *into;
        const float *from;
    } pairs[MERGE_PAIRS_MAX];
};
struct copy {
    int64_t bytes;
    const void *from;
    void *to;
};

/* Copies columns of a matrix into columns of another, in stored values: `columns` values in each
 * of `rows` rows, which lie from_row and to_row values apart. */
struct copy_columns {
    int64_t rows, columns, from_row, to_row;
    const float *from;
    float *to;
};

#define DEVICE_OPERATIONS(X)                                                                                           \
    X(dense_forward)                                                                                                   \
    X(dense_backward_data)                                                                                             \
    X(dense_backward_weight)                                                                                           \
    X(conv2d_forward)                                                                                                  \
    X(conv2d_backward_data)                                                                                            \
    X(conv2d_backward_weight)                                                                                          \
    X(max_pool_forward)                                                                                                \
    X(max_pool_backward)                                                                                               \
    X(average_pool_forward)                                                                                            \
    X(average_pool_backward)                                                                                           \
    X(relu_forward)                                                                                                    \
    X(relu_backward)                                                                                                   \
    X(gelu_forward)                                                                                                    \
    X(gelu_backward)                                                                                                   \
    X(tanh_forward)                                                                                                    \
    X(tanh_backward)                                                                                                   \
    X(add_forward)                                                                                                     \
    X(copy_columns)                                                                                                    \
    X(shortcut_forward)                                                                                                \
    X(shortcut_backward)                                                                                               \
    X(dropout)                                                                                                         \
    X(batch_norm_forward)                                                                                              \
    X(batch_norm_backward)                                                                                             \
    X(batch_norm_inference)                                                                                            \
    X(layer_norm_forward)                                                                                              \
    X(layer_norm_backward)                                                                                             \
    X(embedding_forward)                                                                                               \
    X(embedding_backward)                                                                                              \
    X(attention_forward)                                                                                               \
    X(attention_backward)                                                                                              \
    X(softmax_cross_entropy)                                                                                           \
    X(mean_squared_error)                                                                                              \
    X(begin_step)                                                                                                      \
    X(judge_step)                                                                                                      \
    X(sgd_update)                                                                                                      \
    X(adamw_update)                                                                                                    \
    X(statistics_update)                                                                                               \
    X(square_sums)                                                                                                     \
    X(fill)                                                                                                            \
    X(scale)                                                                                                           \
    X(round_bfloat16)                                                                                                  \
    X(round_float16)                                                                                                   \
    X(axpy)                                                                                                            \
    X(merge_vectors)                                                                                                   \
    X(copy)

enum device_operation {
#define X(name) OPERATION_##name,
    DEVICE_OPERATIONS(X)
#undef X
        OPERATION_COUNT
};

/* Large enough for the arguments of any operation. */
union operation_arguments {
#define X(name) struct name name;
    DEVICE_OPERATIONS(X)
#undef X
};

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the factors of an AdamW update; `step` counts from 1. */
struct update_factors adamw_factors(float rate, float beta1, float beta2, float weight_decay, int64_t step);

/* Return the floats of workspace that an operation needs for a shape; the same for every device. */
int64_t conv2d_workspace(const struct conv2d_shape *shape);
int64_t layer_norm_workspace(int64_t rows, int64_t c);
int64_t batch_norm_workspace(int64_t rows, int64_t c);

#ifdef __cplusplus
}
#endif

#endif
