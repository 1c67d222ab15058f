/* SPDX-License-Identifier: Apache-2.0
 *
 * One launch has the same bits as several that do the same. Strategies compute the examples of a batch separately, and the stages of a
 * Pipeline run layers in several launches that one GPU runs in one.
 */
#include <stdint.h>

#include "tests/gpu/check.h"

static const struct device *by_several; /* the side that uses several launches */

/* Sizes: B, T, C, heads. With two-byte values, attention has two block sizes, which depend on the numbers of heads and examples. */
static void attention(struct side *s, const int64_t *n)
{
    const int64_t at_once = s->device == by_several ? 1 : n[0], values = n[1] * n[2], rows = n[1] * n[3];
    float *qkv = side_values(s, n[0] * values * 3, 1), *dy = side_values(s, n[0] * values, 2);
    float *y = side_output_values(s, n[0] * values), *dqkv = side_output_values(s, n[0] * values * 3);
    float *logsumexp = side_output(s, n[0] * rows);
    for (int64_t i = 0; i < n[0]; i += at_once) {
        float *some = side_from(s, qkv, i * values * 3), *result = side_from(s, y, i * values);
        device_attention_forward_stored(
            s->stream, s->stored,
            &(struct attention_forward){at_once, n[1], n[2], n[3], some, result, logsumexp + i * rows, 0});
        device_attention_backward_stored(
            s->stream, s->stored,
            &(struct attention_backward){at_once, n[1], n[2], n[3], some, result, side_from(s, dy, i * values),
                                         logsumexp + i * rows, side_from(s, dqkv, i * values * 3)});
    }
}

/* Sizes: rows, C. A layer norm of a residual sum, forward and backward, with the gradient of the sum's other reader added. */
static void residual_norm(struct side *s, const int64_t *n)
{
    const bool apart = s->device == by_several;
    const int64_t count = n[0] * n[1];
    float *sum = side_output_values(s, count), *dx = side_output_values(s, count);
    float *dweight = side_output(s, n[1]), *dbias = side_output(s, n[1]);
    float *mean = side_numbers(s, n[0], 1), *rstd = side_numbers(s, n[0], 2);
    float *others = side_values(s, count, 3), *own = apart ? side_values(s, count, 4) : dx;
    struct layer_norm_forward norm = {.rows = n[0],
                                      .c = n[1],
                                      .x = side_values(s, count, 5),
                                      .past = side_values(s, count, 6),
                                      .weight = side_numbers(s, n[1], 7),
                                      .bias = side_numbers(s, n[1], 8),
                                      .sum = sum,
                                      .y = side_output_values(s, count),
                                      .mean = mean,
                                      .rstd = rstd};
    const struct layer_norm_backward back = {n[0],
                                             n[1],
                                             sum,
                                             norm.weight,
                                             mean,
                                             rstd,
                                             others,
                                             own,
                                             dweight,
                                             dbias,
                                             side_numbers(s, layer_norm_workspace(n[0], n[1]), 9),
                                             false,
                                             !apart};
    device_copy(s->stream, &(struct copy){count * stored_bytes(s->stored), norm.past, dx});
    if (apart) {
        device_add_forward_stored(s->stream, s->stored,
                                  &(struct add_forward){count, norm.x, norm.past, sum, ACTIVATION_NONE});
        norm.x = sum;
        norm.past = norm.sum = NULL;
    }
    device_layer_norm_forward_stored(s->stream, s->stored, &norm);
    device_layer_norm_backward_stored(s->stream, s->stored, &back);
    if (apart)
        device_axpy_stored(s->stream, s->stored, &(struct axpy){count, 1.0f, own, dx});
}

/* A batch norm with a rectifier, with or without a residual sum. */
static struct batch_norm_forward batch_norm(struct side *s, const int64_t *n, bool adds)
{
    const int64_t count = n[0] * n[1];
    return (struct batch_norm_forward){.rows = n[0],
                                       .c = n[1],
                                       .x = side_values(s, count, 1),
                                       .weight = side_numbers(s, n[1], 2),
                                       .bias = side_numbers(s, n[1], 3),
                                       .y = side_output_values(s, count),
                                       .mean = side_output(s, n[1]),
                                       .rstd = side_output(s, n[1]),
                                       .variance = side_output(s, n[1]),
                                       .workspace = side_numbers(s, batch_norm_workspace(n[0], n[1]), 4),
                                       .activation = ACTIVATION_RELU,
                                       .past = adds ? side_values(s, count, 5) : NULL};
}

static struct batch_norm_backward batch_norm_back(struct side *s, const struct batch_norm_forward *norm)
{
    const int64_t count = norm->rows * norm->c;
    return (struct batch_norm_backward){.rows = norm->rows,
                                        .c = norm->c,
                                        .x = norm->x,
                                        .weight = norm->weight,
                                        .mean = norm->mean,
                                        .rstd = norm->rstd,
                                        .variance = norm->variance,
                                        .dx = side_output_values(s, count),
                                        .dweight = side_output(s, norm->c),
                                        .dbias = side_output(s, norm->c),
                                        .running_mean = side_numbers(s, norm->c, 6),
                                        .running_variance = side_numbers(s, norm->c, 7),
                                        .mean_step = side_output(s, norm->c),
                                        .variance_step = side_output(s, norm->c),
                                        .momentum = 0.1f,
                                        .share = 0.5f,
                                        .workspace = norm->workspace};
}

/* Half of the smallest number. A number that is not larger is zero once it is stored, and no gradient passes there. */
static const float halves[] = {
    [STORED_FLOAT32] = 0x1p-149f, [STORED_BFLOAT16] = 0x1p-134f, [STORED_FLOAT16] = 0x1p-25f};

/* Sizes: rows, C, whether the normalised values are near this half. The backward pass of the rectifier. */
static void rectified_norm(struct side *s, const int64_t *n)
{
    struct batch_norm_forward norm = batch_norm(s, n, false);
    if (n[2]) {
        device_fill(s->stream, &(struct fill){n[1], halves[s->stored], (float *)norm.weight});
        device_fill(s->stream, &(struct fill){n[1], 0, (float *)norm.bias});
    }
    struct batch_norm_backward back = batch_norm_back(s, &norm);
    float *dy = side_values(s, n[0] * n[1], 8);
    device_batch_norm_forward_stored(s->stream, s->stored, &norm);
    if (s->device == by_several) {
        device_relu_backward_stored(s->stream, s->stored, &(struct relu_backward){n[0] * n[1], norm.y, dy, dy});
    } else {
        back.bias = norm.bias;
        back.activation = ACTIVATION_RELU;
    }
    back.dy = dy;
    device_batch_norm_backward_stored(s->stream, s->stored, &back);
}

/* Sizes: rows, C, whether the sum has two readers. A rectified sum, forward and backward. */
static void rectified_sum(struct side *s, const int64_t *n)
{
    const int64_t count = n[0] * n[1];
    struct batch_norm_forward norm = batch_norm(s, n, true);
    struct batch_norm_backward back = batch_norm_back(s, &norm);
    float *dy = side_output_values(s, count), *others = n[2] ? side_values(s, count, 8) : NULL;
    const struct add_forward add = {count, norm.y, norm.past, norm.y, ACTIVATION_RELU};
    back.dy = dy;
    if (s->device == by_several) {
        norm.past = NULL;
        norm.activation = ACTIVATION_NONE;
        device_batch_norm_forward_stored(s->stream, s->stored, &norm);
        device_add_forward_stored(s->stream, s->stored, &add);
        if (others)
            device_axpy_stored(s->stream, s->stored, &(struct axpy){count, 1.0f, others, dy});
        device_relu_backward_stored(s->stream, s->stored, &(struct relu_backward){count, norm.y, dy, dy});
    } else {
        device_batch_norm_forward_stored(s->stream, s->stored, &norm);
        back.relu_output = norm.y;
        back.others = others;
        back.masked = dy;
    }
    device_batch_norm_backward_stored(s->stream, s->stored, &back);
}

static void check_batch_norms(struct side *plain, struct side *fused)
{
    static const int64_t sizes[][4] = {{5, 33, 0, 0}, {1301, 64, 1, 0}, {3000, 20, 1, 0}, {200, 1032, 0, 0}};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        compare_sides(plain, fused, "a batch norm goes back through its rectifier as two launches do", rectified_norm,
                      sizes[i], 0);
        compare_sides(plain, fused, "a rectified sum within a batch norm has the bits of launches apart", rectified_sum,
                      sizes[i], 0);
    }
}

static void check_stored(struct side *plain, struct side *fused, enum stored stored)
{
    static const int64_t batches[][4] = {{32, 65, 24, 8}, {16, 130, 320, 8}};
    static const int64_t rows[][4] = {{5, 33, 0, 0}, {131, 768, 0, 0}, {40, 16, 0, 0}, {3, 4104, 0, 0}};
    /* `rounds` stays, so that results may not even differ in the last place */
    plain->stored = fused->stored = stored;
    for (unsigned i = 0; i < sizeof batches / sizeof *batches && stored == STORED_BFLOAT16; i++)
        compare_sides(plain, fused, "attention of a batch in bfloat16 has the bits of its examples'", attention,
                      batches[i], 0);
    static const char *const names[] = {[STORED_FLOAT32] = "a layer norm with its sum has the bits of two launches",
                                        [STORED_BFLOAT16] = "in bfloat16 as well",
                                        [STORED_FLOAT16] = "and in float16"};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
        compare_sides(plain, fused, names[stored], residual_norm, rows[i], 0);
    check_batch_norms(plain, fused);
    plain->stored = fused->stored = STORED_FLOAT32;
}

void check_launches(struct side *plain, struct side *fused)
{
    by_several = plain->device;
    check_stored(plain, fused, STORED_FLOAT32);
    check_stored(plain, fused, STORED_BFLOAT16);
    check_stored(plain, fused, STORED_FLOAT16);
}
