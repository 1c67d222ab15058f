/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a function of StableHLO, the language in which XLA takes programs, as MLIR text. (Other releases of StableHLO may read the text
 * differently, unlike portable artifacts; it is tested with plugins of PJRT 0.106 and 0.115 and with libtpu 0.0.52.) The model's lowering (model/lowering.h)
 * calls one function here for each operation; XLA then compiles the text (client.h).
 *
 * Each call appends one operation and returns its result, a name for a tensor of known type and shape. Shapes are row-major. The
 * operations are those of StableHLO's specification (openxla/stablehlo, docs/spec.md) under their own names; a caller must give
 * operands whose shapes fit, because the compiler alone checks them.
 *
 * Life cycle: hlo_init -> hlo_argument … -> operations … -> hlo_finish -> hlo_release. Errors are kept until hlo_finish.
 */
#ifndef COXSWAIN_XLA_STABLEHLO_H
#define COXSWAIN_XLA_STABLEHLO_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buffer.h"

#define HLO_RANK_MAX 5

enum hlo_type { HLO_FLOAT32, HLO_INT32, HLO_UINT32, HLO_UINT64, HLO_BOOL };

struct hlo_shape {
    unsigned rank;
    int64_t dims[HLO_RANK_MAX];
};
#define HLO_SHAPE(...) ((struct hlo_shape){sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), {__VA_ARGS__}})

struct hlo_value {
    unsigned id; /* 0: no value */
    enum hlo_type type;
    struct hlo_shape shape;
};

/* A list of dimensions, such as those that a reduction removes. */
struct hlo_dims {
    unsigned count;
    unsigned at[HLO_RANK_MAX];
};
#define HLO_DIMS(...) ((struct hlo_dims){sizeof((unsigned[]){__VA_ARGS__}) / sizeof(unsigned), {__VA_ARGS__}})
#define HLO_NO_DIMS ((struct hlo_dims){0})

struct hlo {
    struct buffer arguments, body;
    unsigned last;    /* number of the last value */
    bool exact;       /* products are computed in float32, and not in fewer bits where the device is faster then */
    bool is_too_long; /* the text did not fit */
};

/* `ceiling`: bytes of text that the function may have. */
void hlo_init(struct hlo *hlo, size_t ceiling);
void hlo_release(struct hlo *hlo);
/* Adds the function's next argument. */
struct hlo_value hlo_argument(struct hlo *hlo, enum hlo_type type, struct hlo_shape shape);
/* Appends the whole module, with a function `main` that returns these results. ERROR_TOO_LARGE: it would be longer than the ceiling. */
int hlo_finish(struct hlo *hlo, const struct hlo_value *results, unsigned count, struct buffer *text,
               struct error *error);

/* A tensor whose elements all have this value. */
struct hlo_value hlo_constant(struct hlo *hlo, enum hlo_type type, struct hlo_shape shape, double value);
/* Each element is its index along one dimension. */
struct hlo_value hlo_iota(struct hlo *hlo, enum hlo_type type, struct hlo_shape shape, unsigned dimension);

/* Elementwise. `operation` is StableHLO's name, such as "tanh", "add" or "maximum". */
struct hlo_value hlo_unary(struct hlo *hlo, const char *operation, struct hlo_value x);
struct hlo_value hlo_binary(struct hlo *hlo, const char *operation, struct hlo_value a, struct hlo_value b);
/* The same with a number in place of `b`. */
struct hlo_value hlo_binary_constant(struct hlo *hlo, const char *operation, struct hlo_value a, double b);
/* `direction`: "EQ", "GT", "LE" … */
struct hlo_value hlo_compare(struct hlo *hlo, const char *direction, struct hlo_value a, struct hlo_value b);
struct hlo_value hlo_select(struct hlo *hlo, struct hlo_value condition, struct hlo_value yes, struct hlo_value no);
struct hlo_value hlo_convert(struct hlo *hlo, struct hlo_value x, enum hlo_type type);
/* Rounds float32 values to bfloat16's 8 bits of precision, and leaves them float32. Compilers remove a pair of conversions, but
 * not this. */
struct hlo_value hlo_round_to_bfloat16(struct hlo *hlo, struct hlo_value x);

struct hlo_value hlo_reshape(struct hlo *hlo, struct hlo_value x, struct hlo_shape shape);
/* Dimension i of the result is dimension `order.at[i]` of x. */
struct hlo_value hlo_transpose(struct hlo *hlo, struct hlo_value x, struct hlo_dims order);
/* Repeats x: its dimension i becomes dimension `places.at[i]` of the result. */
struct hlo_value hlo_broadcast(struct hlo *hlo, struct hlo_value x, struct hlo_shape shape, struct hlo_dims places);
struct hlo_value hlo_reverse(struct hlo *hlo, struct hlo_value x, struct hlo_dims dims);
struct hlo_value hlo_concatenate(struct hlo *hlo, const struct hlo_value *values, unsigned count, unsigned dimension);
/* Elements first, first + step … below `end` of one dimension. */
struct hlo_value hlo_slice(struct hlo *hlo, struct hlo_value x, unsigned dimension, int64_t first, int64_t end,
                           int64_t step);
/* Surrounds and interleaves x with `value`; `low` and `high` may be negative, and then remove elements. */
struct hlo_padding {
    int64_t low[HLO_RANK_MAX], high[HLO_RANK_MAX], between[HLO_RANK_MAX];
};
struct hlo_value hlo_pad(struct hlo *hlo, struct hlo_value x, double value, const struct hlo_padding *padding);

/* Reduces over `dims`, which the result does not have: `operation` is "add", "maximum" or "minimum". */
struct hlo_value hlo_reduce(struct hlo *hlo, const char *operation, struct hlo_value x, struct hlo_dims dims);
/* Reduces float32 windows of `size` x `size` elements, `stride` apart, of dimensions 1 and 2 of x[B,H,W,C], which is surrounded by
 * `padding` of the operation's neutral value. */
struct hlo_window {
    int64_t size, stride, padding;
};
struct hlo_value hlo_reduce_windows(struct hlo *hlo, const char *operation, struct hlo_value x,
                                    const struct hlo_window *window);
/* Adds each element of `values` to the first largest element of its window of x; zeros elsewhere. */
struct hlo_value hlo_scatter_to_largest(struct hlo *hlo, struct hlo_value x, struct hlo_value values,
                                        const struct hlo_window *window);

/* A product of tensors: `batch` dimensions stand in both and in front of the result, `contracted` ones are summed. */
struct hlo_product {
    struct hlo_dims batch_a, batch_b, contracted_a, contracted_b;
};
struct hlo_value hlo_dot(struct hlo *hlo, struct hlo_value a, struct hlo_value b, const struct hlo_product *product);
/* A convolution over two dimensions. `layout` names the dimensions of input, kernel and result as StableHLO does, for example
 * "[b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f]". */
struct hlo_convolution {
    const char *layout;
    int64_t stride;
    int64_t low[2], high[2];                 /* padding of the input; may be negative */
    int64_t input_dilation, kernel_dilation; /* distance between neighbouring elements */
    struct hlo_shape shape;                  /* of the result */
};
struct hlo_value hlo_convolve(struct hlo *hlo, struct hlo_value x, struct hlo_value kernel,
                              const struct hlo_convolution *convolution);

/* The rows of table[V,C] that indices[...] name: the result has the shape of `indices`, then C. */
struct hlo_value hlo_gather_rows(struct hlo *hlo, struct hlo_value table, struct hlo_value indices);
/* `table` with rows[...,C] added to those rows that indices[...] name. */
struct hlo_value hlo_add_to_rows(struct hlo *hlo, struct hlo_value table, struct hlo_value indices,
                                 struct hlo_value rows);

#endif
