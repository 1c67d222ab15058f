/* SPDX-License-Identifier: Apache-2.0
 *
 * A NaN passes rectifiers and wins maxima. On the GPU it reaches the same outputs as on the CPU, and no others.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/gpu/check.h"

/* Returns numbers, one of which is NaN. */
static float *numbers_with_nan(struct side *s, int64_t count, int64_t at)
{
    const float nan = NAN;
    float *numbers = side_numbers(s, count, 1);
    side_put(s, numbers + at, &nan, sizeof nan);
    return numbers;
}

static void relu(struct side *s)
{
    device_relu_forward(s->stream, &(struct relu_forward){100, numbers_with_nan(s, 100, 41), side_output(s, 100)});
}

static void add(struct side *s)
{
    device_add_forward(s->stream, &(struct add_forward){100, numbers_with_nan(s, 100, 41), side_numbers(s, 100, 2),
                                                        side_output(s, 100), ACTIVATION_RELU});
}

static void dense(struct side *s)
{
    device_dense_forward(s->stream, &(struct dense_forward){40, 30, 20, numbers_with_nan(s, 40 * 20, 5 * 20 + 3),
                                                            side_numbers(s, 30 * 20, 2), side_numbers(s, 30, 3),
                                                            side_output(s, 40 * 30), .activation = ACTIVATION_RELU});
}

static void convolution(struct side *s)
{
    const struct conv2d_shape shape = {1, 8, 8, 3, 20, 3, 1, 0, 6, 6};
    float *workspace = side_numbers(s, conv2d_workspace(&shape), 4);
    device_conv2d_forward(s->stream,
                          &(struct conv2d_forward){shape, numbers_with_nan(s, 8 * 8 * 3, 0),
                                                   side_numbers(s, 20 * 27, 2), side_numbers(s, 20, 3),
                                                   side_output(s, 36 * 20), workspace, ACTIVATION_RELU, .tf32 = false});
}

static void infer_batch_norm(struct side *s, const float *x, const float *past)
{
    float *variance = side_numbers(s, 17, 6);
    device_relu_forward(s->stream, &(struct relu_forward){17, variance, variance}); /* a variance is not negative */
    device_batch_norm_inference(s->stream, &(struct batch_norm_inference){.rows = 6,
                                                                          .c = 17,
                                                                          .x = x,
                                                                          .weight = side_numbers(s, 17, 2),
                                                                          .bias = side_numbers(s, 17, 3),
                                                                          .running_mean = side_numbers(s, 17, 4),
                                                                          .running_variance = variance,
                                                                          .y = side_output(s, 6 * 17),
                                                                          .activation = ACTIVATION_RELU,
                                                                          .past = past});
}

static void batch_norm(struct side *s)
{
    infer_batch_norm(s, numbers_with_nan(s, 6 * 17, 20), NULL);
}

static void batch_norm_and_past(struct side *s)
{
    infer_batch_norm(s, side_numbers(s, 6 * 17, 5), numbers_with_nan(s, 6 * 17, 20));
}

/* The NaN's column becomes NaN in all rows, and no other column does. */
static void batch_norm_of_batch(struct side *s)
{
    device_batch_norm_forward(
        s->stream, &(struct batch_norm_forward){.rows = 600,
                                                .c = 6,
                                                .x = numbers_with_nan(s, 600 * 6, 2000),
                                                .weight = side_numbers(s, 6, 2),
                                                .bias = side_numbers(s, 6, 3),
                                                .y = side_output(s, 600 * 6),
                                                .mean = side_numbers(s, 6, 4),
                                                .rstd = side_numbers(s, 6, 5),
                                                .variance = side_numbers(s, 6, 6),
                                                .workspace = side_numbers(s, batch_norm_workspace(600, 6), 7),
                                                .activation = ACTIVATION_RELU,
                                                .past = side_numbers(s, 600 * 6, 8)});
}

/* A NaN in a gradient: the mask stops it if the rectifier was closed; otherwise its column becomes NaN. */
static void batch_norm_backward(struct side *s)
{
    float *places[14];
    for (uint32_t i = 0; i < sizeof places / sizeof *places; i++)
        places[i] = side_numbers(s, 6, i + 20);
    device_batch_norm_backward(
        s->stream, &(struct batch_norm_backward){.rows = 600,
                                                 .c = 6,
                                                 .x = side_numbers(s, 600 * 6, 2),
                                                 .weight = places[0],
                                                 .mean = places[1],
                                                 .rstd = places[2],
                                                 .variance = places[3],
                                                 .dy = side_numbers(s, 600 * 6, 3),
                                                 .dx = side_output(s, 600 * 6),
                                                 .dweight = places[4],
                                                 .dbias = places[5],
                                                 .running_mean = places[6],
                                                 .running_variance = places[7],
                                                 .mean_step = places[8],
                                                 .variance_step = places[9],
                                                 .workspace = side_numbers(s, batch_norm_workspace(600, 6), 4),
                                                 .relu_output = side_numbers(s, 600 * 6, 5),
                                                 .others = numbers_with_nan(s, 600 * 6, 2003),
                                                 .masked = side_numbers(s, 600 * 6, 6)});
}

static void max_pool(struct side *s)
{
    const struct pool_shape shape = {1, 6, 6, 2, 3, 2, 1, 3, 3};
    device_max_pool_forward(
        s->stream, &(struct max_pool_forward){shape, numbers_with_nan(s, 6 * 6 * 2, 29), side_output(s, 3 * 3 * 2)});
}

/* A row for a whole block, with a NaN in one of its packs of 16 bytes, and behind the last of them. */
#define WIDE_ROW 2051
static void softmax(struct side *s, int64_t at)
{
    float *logits = numbers_with_nan(s, 2 * WIDE_ROW, at), *dlogits = side_output(s, 2 * WIDE_ROW);
    device_softmax_cross_entropy(
        s->stream, &(struct softmax_cross_entropy){2, WIDE_ROW, logits, side_tokens(s, 2, WIDE_ROW, 2), 0.01f, dlogits,
                                                   side_workspace(s, 4), side_output_loss(s), 0, NULL, 0});
}

static void softmax_within(struct side *s)
{
    softmax(s, 1001);
}

static void softmax_behind(struct side *s)
{
    softmax(s, WIDE_ROW - 1);
}

static void norm_of_sum(struct side *s)
{
    device_layer_norm_forward(s->stream, &(struct layer_norm_forward){.rows = 6,
                                                                      .c = 17,
                                                                      .x = side_numbers(s, 6 * 17, 2),
                                                                      .past = numbers_with_nan(s, 6 * 17, 20),
                                                                      .weight = side_numbers(s, 17, 3),
                                                                      .bias = side_numbers(s, 17, 4),
                                                                      .y = side_output(s, 6 * 17),
                                                                      .mean = side_numbers(s, 6, 5),
                                                                      .rstd = side_numbers(s, 6, 6),
                                                                      .sum = side_numbers(s, 6 * 17, 7)});
}

/* Two heads, 16 wide, and more positions than a tile has. The NaN is in a position's key, which all later positions read. */
#define POSITIONS 70
#define WIDTH 32
static float *keys_with_nan(struct side *s, int64_t position)
{
    float *qkv = side_values(s, POSITIONS * WIDTH * 3, 1);
    const int64_t at = position * WIDTH * 3 + WIDTH + 5;
    const float nan = NAN;
    const uint16_t half = s->stored == STORED_FLOAT16 ? 0x7e00 : 0x7fc0;
    side_put(s, side_from(s, qkv, at), s->stored == STORED_FLOAT32 ? (const void *)&nan : &half,
             stored_bytes(s->stored));
    return qkv;
}

static void attention(struct side *s)
{
    device_attention_forward_stored(s->stream, s->stored,
                                    &(struct attention_forward){1, POSITIONS, WIDTH, 2, keys_with_nan(s, 40),
                                                                side_output_values(s, POSITIONS * WIDTH),
                                                                side_numbers(s, POSITIONS * 2, 2), 0});
}

/* The NaN is in the first position, which no position masks: a masked product by 0 need not be NaN on both sides. */
static void attention_back(struct side *s)
{
    float *qkv = keys_with_nan(s, 0), *y = side_values(s, POSITIONS * WIDTH, 2);
    float *logsumexp = side_numbers(s, POSITIONS * 2, 3), *dy = side_values(s, POSITIONS * WIDTH, 4);
    device_attention_forward_stored(s->stream, s->stored,
                                    &(struct attention_forward){1, POSITIONS, WIDTH, 2, qkv, y, logsumexp, 0});
    device_attention_backward_stored(s->stream, s->stored,
                                     &(struct attention_backward){1, POSITIONS, WIDTH, 2, qkv, y, dy, logsumexp,
                                                                  side_output_values(s, POSITIONS * WIDTH * 3)});
}

static float *run(struct side *side, void (*function)(struct side *))
{
    struct error error = ERROR_INIT;
    function(side);
    must(device_stream_synchronise(side->stream, &error), &error);
    return side_read(side, &side->outputs[0]);
}

static void check(struct side *cpu, struct side *gpu, const char *name, void (*function)(struct side *))
{
    float *expected = run(cpu, function), *found = run(gpu, function);
    int64_t lost = 0, more = 0, nans = 0;
    for (int64_t i = 0; i < cpu->outputs[0].count; i++) {
        const bool here = isnan(expected[i]), there = isnan(found[i]);
        nans += here;
        lost += here && !there;
        more += there && !here;
    }
    verdict(nans > 0 && lost == 0 && more == 0, name,
            "of %lld outputs that are NaN on the CPU %lld are not; %lld others are", (long long)nans, (long long)lost,
            (long long)more);
    free(expected);
    free(found);
    side_clear(cpu);
    side_clear(gpu);
}

/* Equal numbers so large that the square of their distance from 0 overflows. There is one row more than a thread takes at once, so some
 * lines have no row. */
#define HUGE_ROWS 65
static void batch_norm_of_huge(struct side *s)
{
    float *x = side_numbers(s, HUGE_ROWS * 8, 2), *y = side_output(s, HUGE_ROWS * 8);
    device_fill(s->stream, &(struct fill){HUGE_ROWS * 8, 2e19f, x});
    device_batch_norm_forward(
        s->stream, &(struct batch_norm_forward){.rows = HUGE_ROWS,
                                                .c = 8,
                                                .x = x,
                                                .weight = side_numbers(s, 8, 2),
                                                .bias = side_numbers(s, 8, 3),
                                                .y = y,
                                                .mean = side_numbers(s, 8, 4),
                                                .rstd = side_numbers(s, 8, 5),
                                                .variance = side_numbers(s, 8, 6),
                                                .workspace = side_numbers(s, batch_norm_workspace(HUGE_ROWS, 8), 7)});
}

static void check_none(struct side *gpu, const char *name, void (*function)(struct side *))
{
    float *found = run(gpu, function);
    int64_t nans = 0;
    for (int64_t i = 0; i < gpu->outputs[0].count; i++)
        nans += isnan(found[i]) != 0;
    verdict(nans == 0, name, "%lld outputs are NaN", (long long)nans);
    free(found);
    side_clear(gpu);
}

static void check_attention(struct side *cpu, struct side *gpu)
{
    static const char *const words[] = {
        [STORED_FLOAT32] = "", [STORED_BFLOAT16] = " bfloat16", [STORED_FLOAT16] = " float16"};
    char text[96];
    for (enum stored kind = STORED_FLOAT32; kind <= STORED_FLOAT16; kind++) {
        cpu->rounds = gpu->rounds = kind;
        gpu->stored = device_stores(gpu->device, kind) ? kind : STORED_FLOAT32;
        snprintf(text, sizeof text, "a NaN passes attention%s, to those who see it", words[kind]);
        check(cpu, gpu, text, attention);
        snprintf(text, sizeof text, "a NaN passes attention%s back, to the others of its head", words[kind]);
        check(cpu, gpu, text, attention_back);
    }
    cpu->rounds = gpu->rounds = gpu->stored = STORED_FLOAT32;
}

void check_not_a_number(struct side *cpu, struct side *gpu)
{
    check(cpu, gpu, "a NaN passes relu", relu);
    check(cpu, gpu, "a NaN passes add with a rectifier", add);
    check(cpu, gpu, "a NaN passes dense with a rectifier", dense);
    check(cpu, gpu, "a NaN passes conv2d with a rectifier", convolution);
    check(cpu, gpu, "a NaN passes batch_norm with a rectifier", batch_norm);
    check(cpu, gpu, "a NaN in what goes past it", batch_norm_and_past);
    check(cpu, gpu, "a NaN spoils the column of a batch norm that adds", batch_norm_of_batch);
    check(cpu, gpu, "a NaN in the gradient of a rectified sum", batch_norm_backward);
    check(cpu, gpu, "a NaN wins max_pool", max_pool);
    check(cpu, gpu, "a NaN among logits is seen", softmax_within);
    check(cpu, gpu, "a NaN in the last of them", softmax_behind);
    check(cpu, gpu, "a NaN passes the layer norm of a sum", norm_of_sum);
    check_none(gpu, "no NaN comes of huge numbers in a batch norm", batch_norm_of_huge);
    check_attention(cpu, gpu);
}
