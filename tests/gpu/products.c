/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of matrices: which numbers their factors are, and who finishes them.
 */
#include <string.h>

#include "tests/gpu/check.h"

enum { SIDE = 256, COUNT = SIDE * SIDE };

static float *constant(struct side *gpu, float value)
{
    float *memory = side_numbers(gpu, COUNT, 1);
    device_fill(gpu->stream, &(struct fill){COUNT, value, memory});
    return memory;
}

/* The sums' first and last. */
static void multiply(struct side *gpu, float factor, bool tf32, float ret_sums[2])
{
    struct error error = ERROR_INIT;
    const float *x = constant(gpu, factor), *w = constant(gpu, 1);
    float *y = side_numbers(gpu, COUNT, 2);
    device_dense_forward(gpu->stream,
                         &(struct dense_forward){SIDE, SIDE, SIDE, x, w, NULL, y, ACTIVATION_NONE, .tf32 = tf32});
    must(device_stream_synchronise(gpu->stream, &error), &error);
    side_get(gpu, ret_sums, y, sizeof *ret_sums);
    side_get(gpu, ret_sums + 1, y + COUNT - 1, sizeof *ret_sums);
    side_clear(gpu);
}

/* A factor with twelve bits behind the point: ten of them are nought. */
static void check_cuts(struct side *gpu)
{
    const float factor = 1 + 1.0f / 4096, whole = SIDE * (1 + 1.0f / 4096);
    float sums[2];
    multiply(gpu, factor, false, sums);
    verdict(sums[0] == whole && sums[1] == whole, "products of float32 are not cut to TF32", "%.9g, %.9g",
            (double)sums[0], (double)sums[1]);
    multiply(gpu, factor, true, sums);
    verdict(sums[0] == SIDE && sums[1] == SIDE, "but where they may be", "%.9g, %.9g", (double)sums[0],
            (double)sums[1]);
}

/* ---------------------------------------------------------------- by cuBLASLt, and by kernels of ours behind a product */

enum { ROWS = 500, WIDE = 384, NARROW = 128 };

/* `count` values that begin `skipped` of them behind where memory is aligned. */
static float *apart(struct side *s, int64_t count, uint32_t seed, int64_t skipped)
{
    return side_from(s, side_values(s, skipped + count, seed), skipped);
}

static void forwards(struct side *s, const int64_t *n)
{
    device_dense_forward_stored(s->stream, s->stored,
                                &(struct dense_forward){.m = ROWS,
                                                        .n = WIDE,
                                                        .k = NARROW,
                                                        .x = side_values(s, ROWS * NARROW, 1),
                                                        .weight = apart(s, WIDE * NARROW, 2, n[2]),
                                                        .bias = apart(s, WIDE, 3, n[2]),
                                                        .y = side_output_values(s, ROWS * WIDE),
                                                        .gelu = n[0] ? side_output_values(s, ROWS * WIDE) : NULL,
                                                        .tf32 = n[1]});
}

static void backwards(struct side *s, const int64_t *n)
{
    device_dense_backward_data_stored(s->stream, s->stored,
                                      &(struct dense_backward_data){.m = ROWS,
                                                                    .n = NARROW,
                                                                    .k = WIDE,
                                                                    .dy = side_values(s, ROWS * NARROW, 1),
                                                                    .weight = side_values(s, NARROW * WIDE, 2),
                                                                    .gelu_input = side_values(s, ROWS * WIDE, 3),
                                                                    .dx = side_output_values(s, ROWS * WIDE),
                                                                    .tf32 = n[1]});
}

/* Sums that are rounded before their GELU, and sums that are not, differ somewhere. */
static void check_use(struct side *plain, struct side *gpu)
{
    static char theirs[ROWS * WIDE * 2], ours[ROWS * WIDE * 2];
    const int64_t sizes[] = {1, 0};
    struct error error = ERROR_INIT;
    forwards(plain, sizes);
    must(device_stream_synchronise(plain->stream, &error), &error);
    forwards(gpu, sizes);
    must(device_stream_synchronise(gpu->stream, &error), &error);
    side_get(plain, ours, plain->outputs[1].memory, sizeof ours);
    side_get(gpu, theirs, gpu->outputs[1].memory, sizeof theirs);
    verdict(memcmp(theirs, ours, sizeof ours) != 0, "cuBLASLt takes the GELU of sums that are not rounded",
            "every bit is that of kernels: it has not been used");
    side_clear(plain);
    side_clear(gpu);
}

static void check_finishing(struct side *plain, struct side *gpu)
{
    compare_sides(plain, gpu, "cuBLASLt adds a bias", forwards, (const int64_t[]){0, 0, 0, 0}, 2e-6);
    compare_sides(plain, gpu, "cuBLASLt adds a bias from anywhere", forwards, (const int64_t[]){0, 0, 1, 0}, 2e-6);
    compare_sides(plain, gpu, "cuBLASLt adds a bias to TF32", forwards, (const int64_t[]){0, 1, 0, 0}, 2.0 / 1024);
    plain->rounds = gpu->rounds = true;
    plain->stored = gpu->stored = STORED_BFLOAT16;
    compare_sides(plain, gpu, "cuBLASLt adds a bias", forwards, (const int64_t[]){0, 0, 0, 0}, 2e-6);
    compare_sides(plain, gpu, "cuBLASLt takes a GELU", forwards, (const int64_t[]){1, 0, 0, 0}, 2e-6);
    compare_sides(plain, gpu, "cuBLASLt takes a GELU, of a bias from anywhere", forwards, (const int64_t[]){1, 0, 1, 0},
                  2e-6);
    compare_sides(plain, gpu, "cuBLASLt goes back behind one", backwards, (const int64_t[]){1, 0, 0, 0}, 2e-6);
    check_use(plain, gpu);
    plain->rounds = gpu->rounds = false;
    plain->stored = gpu->stored = STORED_FLOAT32;
}

void check_products(struct side *plain, struct side *gpu)
{
    check_cuts(gpu);
    check_finishing(plain, gpu);
}
