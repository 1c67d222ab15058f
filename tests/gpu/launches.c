/* SPDX-License-Identifier: Apache-2.0
 *
 * One launch, and several that do the same, have the same bits: examples of a batch are computed apart by strategies that cut it, and
 * layers that one GPU runs in one launch by stages of a Pipeline.
 */
#include <stdint.h>

#include "tests/gpu/check.h"

static const struct device *by_several; /* launches, there */

/* Sizes: B, T, C, heads. Attention of values in two bytes has blocks of two sizes, by how many heads and examples there are. */
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

/* Sizes: rows, C. A layer norm of a residual sum, and its way back, which adds to what the sum's other reader has made. */
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

static void check_stored(struct side *plain, struct side *fused, enum stored stored)
{
    static const int64_t batches[][4] = {{32, 65, 24, 8}, {16, 130, 320, 8}};
    static const int64_t rows[][4] = {{5, 33, 0, 0}, {131, 768, 0, 0}, {40, 16, 0, 0}, {3, 4104, 0, 0}};
    plain->stored = fused->stored = stored; /* what they `round` stays: they may not differ by a last place */
    for (unsigned i = 0; i < sizeof batches / sizeof *batches && stored == STORED_BFLOAT16; i++)
        compare_sides(plain, fused, "attention of a batch in bfloat16 has the bits of its examples'", attention,
                      batches[i], 0);
    static const char *const names[] = {[STORED_FLOAT32] = "a layer norm with its sum has the bits of two launches",
                                        [STORED_BFLOAT16] = "in bfloat16 as well",
                                        [STORED_FLOAT16] = "and in float16"};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
        compare_sides(plain, fused, names[stored], residual_norm, rows[i], 0);
    plain->stored = fused->stored = STORED_FLOAT32;
}

void check_launches(struct side *plain, struct side *fused)
{
    by_several = plain->device;
    check_stored(plain, fused, STORED_FLOAT32);
    check_stored(plain, fused, STORED_BFLOAT16);
    check_stored(plain, fused, STORED_FLOAT16);
}
