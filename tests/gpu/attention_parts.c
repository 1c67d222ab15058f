/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of values in two bytes has blocks of two sizes, by how many heads and examples there are. Each example has the same
 * bits in a batch that takes the larger ones as by itself, which takes the others.
 */
#include <stdint.h>

#include "tests/gpu/check.h"

static const struct device *by_parts; /* one example at a time here */

/* Sizes: B, T, C, heads. */
static void attention(struct side *s, const int64_t *n)
{
    const int64_t at_once = s->device == by_parts ? 1 : n[0], values = n[1] * n[2], rows = n[1] * n[3];
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

void check_attention_parts(struct side *plain, struct side *fused)
{
    static const int64_t sizes[][4] = {{32, 65, 24, 8}, {16, 130, 320, 8}};
    by_parts = plain->device;
    plain->rounds = fused->rounds = plain->stored = fused->stored = STORED_BFLOAT16;
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
        compare_sides(plain, fused, "attention of a batch has the bits of its examples'", attention, sizes[i], 0);
    plain->rounds = fused->rounds = plain->stored = fused->stored = STORED_FLOAT32;
}
