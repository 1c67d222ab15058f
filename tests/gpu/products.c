/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of matrices: the precision of their factors, and bias and GELU within cuBLASLt.
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

/* Returns the first and the last sum. */
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

/* The factor has a bit in the twelfth place behind the point, which TF32 cuts. */
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

/* Returns `count` values that begin `skipped` values behind an aligned address; they do not depend on `skipped`. */
static float *apart(struct side *s, int64_t count, uint32_t seed, int64_t skipped)
{
    float *place = side_from(s, side_values(s, skipped + count, seed), skipped);
    device_copy(s->stream, &(struct copy){count * stored_bytes(s->stored), side_values(s, count, seed), place});
    return place;
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
                                                                    .weight = apart(s, NARROW * WIDE, 2, n[2]),
                                                                    .gelu_input = side_values(s, ROWS * WIDE, 3),
                                                                    .dx = side_output_values(s, ROWS * WIDE),
                                                                    .tf32 = n[1]});
}

enum { BYTES = ROWS * WIDE * 4 };

/* Runs an operation and returns its last output's bytes, in static memory. */
static const char *bytes_of(struct side *s, side_case *function, const int64_t *sizes)
{
    static char bytes[2][BYTES];
    static int turn;
    struct error error = ERROR_INIT;
    function(s, sizes);
    must(device_stream_synchronise(s->stream, &error), &error);
    turn = !turn;
    memset(bytes[turn], 0, BYTES);
    const struct output *output = &s->outputs[s->output_count - 1];
    side_get(s, bytes[turn], output->memory, output->count * stored_bytes(s->stored));
    side_clear(s);
    return bytes[turn];
}

/* A GELU of rounded sums differs somewhere from one of sums that are not rounded. */
static void check_use(struct side *plain, struct side *fused)
{
    const int64_t sizes[] = {1, 0, 0, 0};
    const char *ours = bytes_of(plain, forwards, sizes), *theirs = bytes_of(fused, forwards, sizes);
    verdict(memcmp(theirs, ours, BYTES) != 0, "cuBLASLt takes the GELU of sums that are not rounded",
            "every bit is that of kernels: it has not been used");
}

/* The same layer in a whole model and in a part of it. */
static void check_place(struct side *fused, side_case *function, const int64_t sizes[2])
{
    const char *here = bytes_of(fused, function, (const int64_t[]){sizes[0], sizes[1], 0, 0});
    for (int64_t skipped = 1; skipped < 9; skipped++) {
        const char *there = bytes_of(fused, function, (const int64_t[]){sizes[0], sizes[1], skipped, 0});
        verdict(memcmp(here, there, BYTES) == 0, "cuBLASLt gives the same bits wherever weight and bias lie",
                "%lld values from where memory is aligned they are others", (long long)skipped);
    }
}

static void compare_finished(struct side *plain, struct side *fused, const char *name, side_case *function,
                             const int64_t sizes[2], double tolerance)
{
    const struct device_library_work before = device_count_library_work(fused->device);
    compare_sides(plain, fused, name, function, (const int64_t[]){sizes[0], sizes[1], 0, 0}, tolerance);
    check_place(fused, function, sizes);
    const struct device_library_work after = device_count_library_work(fused->device);
    const int64_t finished = after.finished_products - before.finished_products;
    const int64_t refused = after.refused_products - before.refused_products;
    verdict(finished >= 11 && refused == 0, "all of them", "%lld were cuBLASLt's, %lld it refused", (long long)finished,
            (long long)refused);
}

static void check_finishing(struct side *plain, struct side *fused)
{
    compare_finished(plain, fused, "cuBLASLt adds a bias", forwards, (const int64_t[]){0, 0}, 2e-6);
    compare_finished(plain, fused, "cuBLASLt adds a bias to TF32", forwards, (const int64_t[]){0, 1}, 2.0 / 1024);
    plain->rounds = fused->rounds = plain->stored = fused->stored = STORED_BFLOAT16;
    compare_finished(plain, fused, "cuBLASLt adds a bias", forwards, (const int64_t[]){0, 0}, 2e-6);
    compare_finished(plain, fused, "cuBLASLt takes a GELU", forwards, (const int64_t[]){1, 0}, 2e-6);
    compare_finished(plain, fused, "cuBLASLt goes back behind one", backwards, (const int64_t[]){1, 0}, 2e-6);
    check_use(plain, fused);
    plain->rounds = fused->rounds = plain->stored = fused->stored = STORED_FLOAT32;
    verdict(device_count_library_work(plain->device).finished_products == 0, "and none without COXSWAIN_GPU_LT=1",
            "some were");
}

void check_products(struct side *plain, struct side *fused)
{
    check_cuts(plain);
    check_finishing(plain, fused);
}
