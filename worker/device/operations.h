/* SPDX-License-Identifier: Apache-2.0
 *
 * The operations of a device: one argument struct each, launched on a stream by
 * `device_<name>(stream, &arguments)`. Arguments are copied at the launch; what
 * they point to is device memory and must stay until the stream has passed.
 *
 * Tensors are row-major; images are N H W C; tokens and classes are int32. Index names follow the papers: B examples, T positions, C channels or
 * width, NH heads. M, N, K are those of a matrix product. A result depends on
 * shapes, inputs and instruction set only, never on the number of threads.
 *
 * The tensors that layers pass to each other (inputs, outputs, their gradients,
 * logits) and the weights and biases of dense layers and convolutions are stored
 * as the launch says (enum stored): pointers to them are `stored_value *`. All
 * other tensors (parameters of other layers, gradients of parameters, statistics,
 * targets) are always float32, and so is all arithmetic.
 *
 * `tf32` allows a GPU to round the factors of a float32 product to TF32 (ten bits
 * of fraction) for its tensor cores; sums stay float32. CPUs and products of
 * 16-bit values ignore it.
 *
 * `accumulate` adds the finished result to what the memory holds, so that adding
 * shard by shard gives the bits of adding finished shard gradients.
 */
#ifndef COXSWAIN_DEVICE_OPERATIONS_H
#define COXSWAIN_DEVICE_OPERATIONS_H

#include <stdbool.h>
#include <stdint.h>

/* How values lie in memory. With STORED_BFLOAT16 (the upper half of a float32) and STORED_FLOAT16 a value takes two bytes and is
 * rounded to nearest when it is written. device_stores says whether a device has them. */
enum stored { STORED_FLOAT32, STORED_BFLOAT16, STORED_FLOAT16 };
static inline int64_t stored_bytes(enum stored stored)
{
    return stored == STORED_FLOAT32 ? 4 : 2;
}
/* One value of such a tensor. It is a float with STORED_FLOAT32 only: with the others the pointer is to two-byte values, and
 * must not be indexed as floats. */
typedef float stored_value;

enum activation { ACTIVATION_NONE, ACTIVATION_RELU };
struct step_values;

/* The distance between the beginnings of two rows of a matrix, in values; `row` 0: the rows are packed. The gap between rows is
 * neither read nor written. Rows that begin at multiples of 16 bytes make products faster on GPUs. */
static inline int64_t row_or_packed(int64_t row, int64_t columns)
{
    return row > 0 ? row : columns;
}

/* y[M,N] = activation(x[M,K] w[N,K]^T + bias[N]); the bias may be NULL. With `gelu`, values [M,N], that
 * becomes the GELU of y, which a GPU may take before y is rounded. */
struct dense_forward {
    int64_t m, n, k;
    const stored_value *x, *weight, *bias;
    stored_value *y;
    enum activation activation;
    bool tf32;
    stored_value *gelu;
    int64_t y_row; /* not with `gelu` */
};

/* dx[M,K] = dy[M,N] w[N,K]; where `relu_output` (x itself, [M,K]) is given, dx is zero where it is not positive; where x is the
 * GELU of `gelu_input` [M,K], dx becomes the gradient of that. */
struct dense_backward_data {
    int64_t m, n, k;
    const stored_value *dy, *weight, *relu_output;
    stored_value *dx;
    bool tf32;
    const stored_value *gelu_input;
    int64_t dy_row;
};

/* dw[N,K] = dy[M,N]^T x[M,K]; db[N] = column sums of dy (NULL: none). */
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

/* Square windows; what lies in the padding never wins a maximum, a NaN always does. */
struct pool_shape {
    int64_t b, h, w, c, size, stride, padding, oh, ow;
};

struct max_pool_forward {
    struct pool_shape shape;
    const stored_value *x;
    stored_value *y;
};

/* The first element of a window that equals its maximum gets the gradient; with `relu` (x is a rectifier's output)
 * only where it is positive, which makes dx the gradient of the rectifier's input. */
struct max_pool_backward {
    struct pool_shape shape;
    const stored_value *x, *y, *dy;
    stored_value *dx;
    bool relu;
};

/* Averages over size x size, zeros of the padding included. */
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

/* Elementwise; y may be x. A rectifier, here and as an activation, keeps NaN. gelu is the tanh form (Hendrycks and Gimpel 2016), as GPT-2 has it. */
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

/* The way past a block that changes the shape, without parameters (He et al. 2016, option A): every stride-th pixel of
 * x[B,H,W,C], zeros behind its channels: y[B,OH,OW,O], O >= C, OH = ceil(H / stride). */
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

/* Srivastava et al. 2014: y = x / (1 - rate), or 0 where the random word of the element says so; y may be x. Both
 * directions. The word is a function of key, layer, step, the example's number in the global batch (first_example + i)
 * and the element within the example, and of nothing else. */
struct dropout {
    int64_t examples, elements; /* `elements` of each example, below 2^32 */
    const stored_value *x;
    stored_value *y;
    float rate;
    uint64_t key;
    uint32_t layer, step;
    int64_t first_example;
    const struct step_values *values; /* NULL, or in place of `step` */
};

/* Ba et al. 2016, epsilon 1e-5, over the last axis of x[rows,C]; mean and rstd have `rows` elements. With `past`, values
 * [rows,C], x + past is taken in place of x, and put into `sum`, values [rows,C]: as it is there. */
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
    bool add; /* to what dx has, which then is not dy */
};

/* Ioffe and Szegedy 2015, epsilon 1e-5: every column of x[rows,C] over all rows, with the variance of the rows themselves.
 * mean, rstd and variance (here of rows - 1, PyTorch's rule for the running one) have C elements. With `past`, values [rows,C], y is
 * activation(normalised x + past), to the bits of two launches: what is normalised is added as it would have been stored. */
/* With peers the statistics are those of the rows of all shards, and so are the sums of the way back (CPUs). */
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
/* Besides, `mean_step` and `variance_step` get what this batch subtracts from the running values:
 * share * momentum * (running - batch's), 0 without rows.
 *
 * A rectifier behind it can be gone back through as well, to the bits of relu_backward before it. One that was its own activation: with
 * `activation`, what is rectified is worked out again from x, `weight` and `bias`. One of a sum that what it normalises went into: with
 * `relu_output`, values [rows,C], dy passes where that is positive, `others` (values [rows,C], or NULL) is added to dy before, and
 * what comes of it goes into `masked`, which may be dy: the gradient of all that was added up. Never both. */
struct batch_norm_backward {
    int64_t rows, c;
    const float *x, *weight, *mean, *rstd, *variance, *dy;
    float *dx; /* NULL: not wanted */
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
/* With the running values instead of the batch's. */
struct batch_norm_inference {
    int64_t rows, c;
    const float *x, *weight, *bias, *running_mean, *running_variance;
    float *y;
    enum activation activation;
    const float *past; /* as for batch_norm_forward */
};

/* y[B,T,C] = token[V,C][tokens[B,T]] + position[T,C]. Tokens outside 0..V-1 fail the stream. */
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
    bool token_begun; /* dtoken holds a part of its gradient already (a tied output's): add to it in any case */
};

/* Causal softmax attention (Vaswani et al. 2017) of qkv[B,T,3C], heads of C/NH; `logsumexp`[B,NH,T] is kept for the way back.
 * Rows of y and logsumexp before `first` are not asked for: they are left as they are, or worked out again. */
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

/* What one pass adds up; lives in shared memory (device.h). `count` is examples, or target tokens. */
struct loss_sums {
    double loss;
    int64_t correct;
    int64_t count;
};

/* Over rows of logits[rows,classes]; dlogits (NULL: evaluation) = (softmax - one hot) * scale, and may be logits.
 * `workspace` has 2 doubles a row. Targets outside 0..classes-1 fail the stream. Of a batch that goes part by part the last
 * part has the sums: those of all, in the order of one. */
struct softmax_cross_entropy {
    int64_t rows, classes;
    const float *logits;
    const int32_t *targets;
    float scale;
    float *dlogits;
    double *workspace;
    struct loss_sums *sums;           /* overwritten; NULL: a later part's */
    int64_t earlier;                  /* rows of earlier parts, whose workspace lies before this one's */
    const struct step_values *values; /* NULL, or whose loss_scale `scale` is multiplied by */
    int64_t row;                      /* of logits and dlogits */
};

/* The loss of a row is the mean over its `width` outputs of (y - target)^2; dy carries `scale`. */
struct mean_squared_error {
    int64_t rows, width;
    const float *y, *targets;
    float scale;
    float *dy;
    double *workspace;
    struct loss_sums *sums;
    const struct step_values *values; /* as for softmax_cross_entropy */
};

/* What an update takes from the learning rate and, for AdamW, from the number of the step. */
struct update_factors {
    float rate;
    float rate_over_correction1; /* rate / (1 - beta1^step) */
    float inverse_root_correction2;
    float keep; /* 1 - rate * weight_decay */
};
/* What launches of a step read that differs from step to step, or is found out by the device itself: in device memory, so that the
 * host can queue what comes next before it knows, and queue equal launches again unchanged. */
struct step_values {
    struct update_factors factors;
    uint32_t pass; /* the step whose passes come next: dropouts are a function of it */
    float
        loss_scale; /* of the passes that come next, 1 where losses are not scaled: judge_step goes on with it (loss_scale.h) */
    int32_t good_steps; /* since it last changed; -1: it stays */
    /* By judge_step: */
    float gradient_scale; /* of clipping, by the loss scale */
    int32_t refused;      /* loss or norm is not a number, or the stream has failed: the update changes nothing */
};

/* Everything that is not judge_step's. */
struct begin_step {
    struct update_factors factors;
    uint32_t pass;
    float loss_scale; /* 0: losses are not scaled */
    int32_t good_steps;
    struct step_values *values;
};

/* The end of a step's passes: the gradient's norm (its scale taken away) from sums over its blocks, added in their order, the
 * factor that keeps it within `limit` (0: none), whether the update may be made, and the next passes' scale of the loss. Norm and
 * losses go to shared memory as well, for the host. */
struct judge_step {
    int64_t blocks;
    const double *block_sums; /* square_sums */
    int64_t passes;
    const struct loss_sums *sums;
    double limit;
    struct step_values *values;
    double *ret_norm;           /* shared memory */
    struct loss_sums *ret_sums; /* shared memory: those of each pass */
};

/* g' = gradient * gradient_scale + weight_decay * p; v = momentum * v + g'; p -= rate * v (velocity NULL: p -= rate * g'). */
struct sgd_update {
    int64_t count;
    float *parameters, *velocity;
    const float *gradients;
    float rate, momentum, weight_decay, gradient_scale;
    const struct step_values *values; /* NULL, or in place of rate and gradient_scale */
};

/* Loshchilov and Hutter 2019: decay apart from the moments; `step` counts from 1 for the bias corrections. */
struct adamw_update {
    int64_t count;
    float *parameters, *m, *v;
    const float *gradients;
    float rate, beta1, beta2, epsilon, weight_decay, gradient_scale;
    int64_t step;
    const struct step_values *values; /* NULL, or in place of rate, gradient_scale, weight_decay and step */
};

/* Running statistics, whose step is subtracted as it is. */
struct statistics_update {
    int64_t count;
    float *statistics;
    const float *steps;
    const struct step_values *values; /* NULL, or nothing changes where they refuse */
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
/* y = the bfloat16 next to x, of two equally near the even one. x is float32, y a value, which may be x where that is, too. */
struct round_bfloat16 {
    int64_t count;
    const float *x;
    float *y;
};
/* Likewise the float16 next to x (float16.h). */
struct round_float16 {
    int64_t count;
    const float *x;
    float *y;
};
/* y += factor * x; both are values, or float32. */
struct axpy {
    int64_t count;
    float factor;
    const float *x;
    float *y;
};
/* Additions in place, each done before the next: into += from, vectors of `count` floats, which are the same or apart. */
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

/* Columns of a matrix of values into columns of another: `columns` of each of `rows` rows, which lie so many floats apart. */
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

/* Large enough for any of them. */
union operation_arguments {
#define X(name) struct name name;
    DEVICE_OPERATIONS(X)
#undef X
};

#ifdef __cplusplus
extern "C" {
#endif

/* For an update of AdamW; step counts from 1. */
struct update_factors adamw_factors(float rate, float beta1, float beta2, float weight_decay, int64_t step);

/* Floats of workspace that an operation wants for a shape; the same for every device. */
int64_t conv2d_workspace(const struct conv2d_shape *shape);
int64_t layer_norm_workspace(int64_t rows, int64_t c);
int64_t batch_norm_workspace(int64_t rows, int64_t c);

#ifdef __cplusplus
}
#endif

#endif
