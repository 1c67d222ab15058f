/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps that the device judges itself: norms and verdicts are the CPU's, an update by values in device memory has the bits of one by
 * arguments, and a refused step changes nothing.
 */
#include <math.h>
#include <string.h>

#include "tests/gpu/check.h"

enum { COUNT = 5000, BLOCKS_MAX = 5000, PASSES = 3 };
#define RATE 1e-3f
#define BETA1 0.9f
#define BETA2 0.999f
#define DECAY 0.1f
#define STEP 3

/* The input and the results of a step. */
struct judged {
    struct step_values *values;
    double *norm;
    struct loss_sums *sums;
};

/* Judges a step with `first_loss` in its first pass and block sums 1/7, 2/7, … */
static struct judged judge_scaled(struct side *s, int64_t blocks, double limit, double first_loss, float loss_scale)
{
    static double block_sums[BLOCKS_MAX];
    const struct loss_sums losses[PASSES] = {{first_loss, 1, 4}, {2.5, 2, 4}, {0.25, 3, 3}};
    struct judged judged = {.values = (struct step_values *)side_workspace(s, 8), .norm = side_output_doubles(s, 1)};
    double *near_blocks = side_workspace(s, BLOCKS_MAX), *near_losses = side_workspace(s, PASSES * 3);
    for (int64_t i = 0; i < blocks; i++)
        block_sums[i] = (double)(i + 1) / 7;
    if (blocks > 0)
        side_put(s, near_blocks, block_sums, blocks * (int64_t)sizeof *block_sums);
    side_put(s, near_losses, losses, sizeof losses);
    judged.sums = (struct loss_sums *)side_output_doubles(s, PASSES * 3);
    device_begin_step(s->stream, &(struct begin_step){.factors = adamw_factors(RATE, BETA1, BETA2, DECAY, STEP),
                                                      .pass = 9,
                                                      .loss_scale = loss_scale,
                                                      .good_steps = 1999,
                                                      .values = judged.values});
    device_judge_step(s->stream, &(struct judge_step){.blocks = blocks,
                                                      .block_sums = near_blocks,
                                                      .passes = PASSES,
                                                      .sums = (struct loss_sums *)near_losses,
                                                      .limit = limit,
                                                      .values = judged.values,
                                                      .ret_norm = judged.norm,
                                                      .ret_sums = judged.sums});
    return judged;
}

static struct judged judge(struct side *s, int64_t blocks, double limit, double first_loss)
{
    return judge_scaled(s, blocks, limit, first_loss, 0);
}

/* Four vectors, changed by both optimizers, running statistics and dropout. */
struct vectors {
    float *adamw, *sgd, *statistics, *dropped;
};

static struct vectors update(struct side *s, const struct step_values *values, float scale)
{
    struct vectors vectors = {side_output(s, COUNT), side_output(s, COUNT), side_output(s, COUNT),
                              side_output(s, COUNT)};
    float *m = side_output(s, COUNT), *v = side_output(s, COUNT), *gradients = side_numbers(s, COUNT, 1);
    device_relu_forward(s->stream, &(struct relu_forward){COUNT, v, v});
    device_adamw_update(s->stream, &(struct adamw_update){COUNT, vectors.adamw, m, v, gradients, RATE, BETA1, BETA2,
                                                          1e-8f, DECAY, scale, STEP, values});
    device_sgd_update(s->stream,
                      &(struct sgd_update){COUNT, vectors.sgd, NULL, gradients, RATE, 0.9f, 0.01f, scale, values});
    device_statistics_update(s->stream, &(struct statistics_update){COUNT, vectors.statistics, gradients, values});
    device_dropout(s->stream, &(struct dropout){.examples = 5,
                                                .elements = COUNT / 5,
                                                .x = gradients,
                                                .y = vectors.dropped,
                                                .rate = 0.3f,
                                                .key = 77,
                                                .step = 9,
                                                .values = values});
    return vectors;
}

/* Sizes: blocks, limit, the loss's scale. */
static void judged_step(struct side *s, const int64_t *n)
{
    const struct judged judged = judge_scaled(s, n[0], (double)n[1], 1.5, (float)n[2]);
    (void)update(s, judged.values, 0);
}

static bool are_equal(struct side *s, const float *a, const float *b)
{
    static float first[COUNT], second[COUNT];
    side_get(s, first, a, sizeof first);
    side_get(s, second, b, sizeof second);
    return memcmp(first, second, sizeof first) == 0;
}

static void check_values(struct side *gpu)
{
    const double limit = 2;
    const struct judged judged = judge(gpu, 4, limit, 1.5); /* norm: root of 10/7 */
    const struct vectors by_values = update(gpu, judged.values, 0);
    gpu->output_count = 2; /* so that it starts with the same numbers */
    const struct vectors by_arguments = update(gpu, NULL, 1);
    verdict(are_equal(gpu, by_values.adamw, by_arguments.adamw) && are_equal(gpu, by_values.sgd, by_arguments.sgd) &&
                are_equal(gpu, by_values.statistics, by_arguments.statistics) &&
                are_equal(gpu, by_values.dropped, by_arguments.dropped),
            "values in device memory have the bits of arguments", "they differ");
    verdict(fabs(*judged.norm - sqrt(10.0 / 7)) < 1e-15 && judged.sums[2].correct == 3, "the host sees norm and losses",
            "%.17g", *judged.norm);
    side_clear(gpu);
}

static void check_refusal(struct side *gpu, double loss, const char *name)
{
    const struct judged judged = judge(gpu, 4, 0, loss);
    float *start = side_numbers(gpu, COUNT, 77 + gpu->output_count);
    const struct vectors vectors = update(gpu, judged.values, 0);
    struct step_values values;
    side_get(gpu, &values, judged.values, sizeof values);
    verdict(values.refused != 0 && are_equal(gpu, start, vectors.adamw), name, "it changed something");
    side_clear(gpu);
}

/* Gradients of scaled losses, in the stored precision. */
static void scaled_losses(struct side *s, const int64_t *n)
{
    const struct judged judged = judge_scaled(s, 4, 0, 1.5, 512); /* the scale becomes 1024 */
    int64_t count = n[0] * n[1];
    device_softmax_cross_entropy_stored(s->stream, s->stored,
                                        &(struct softmax_cross_entropy){.rows = n[0],
                                                                        .classes = n[1],
                                                                        .logits = side_values(s, count, 1),
                                                                        .targets = side_tokens(s, n[0], n[1], 2),
                                                                        .scale = 0.01f,
                                                                        .dlogits = side_output_values(s, count),
                                                                        .workspace = side_workspace(s, 2 * n[0]),
                                                                        .sums = side_output_loss(s),
                                                                        .values = judged.values});
    device_mean_squared_error_stored(s->stream, s->stored,
                                     &(struct mean_squared_error){.rows = n[0],
                                                                  .width = n[1],
                                                                  .y = side_values(s, count, 1),
                                                                  .targets = side_numbers(s, count, 2),
                                                                  .scale = 0.01f,
                                                                  .dy = side_output_values(s, count),
                                                                  .workspace = side_workspace(s, 2 * n[0]),
                                                                  .sums = side_output_loss(s),
                                                                  .values = judged.values});
}

static void check_loss_scale(struct side *gpu)
{
    const double losses[] = {1.5, INFINITY};
    const float next[] = {1024, 256};
    for (int i = 0; i < 2; i++) {
        struct step_values values;
        const struct judged judged = judge_scaled(gpu, 4, 0, losses[i], 512);
        side_get(gpu, &values, judged.values, sizeof values);
        verdict(values.loss_scale == next[i] && values.good_steps == 0 && values.gradient_scale == 1.0f / 512,
                i ? "a refused step halves the loss's scale" : "a row of good steps doubles it", "%g after %d",
                (double)values.loss_scale, values.good_steps);
        verdict(fabs(*judged.norm - sqrt(10.0 / 7) / 512) < 1e-15, "and is not in the norm", "%.17g", *judged.norm);
        side_clear(gpu);
    }
}

static void check_scaled_losses(struct side *cpu, struct side *gpu)
{
    static const int64_t sizes[][4] = {{3, 7}, {129, 65}};
    static const enum stored kinds[] = {STORED_FLOAT32, STORED_BFLOAT16, STORED_FLOAT16};
    for (int i = 0; i < 6; i++) {
        cpu->rounds = gpu->rounds = kinds[i / 2];
        gpu->stored = device_stores(gpu->device, kinds[i / 2]) ? kinds[i / 2] : STORED_FLOAT32;
        compare_sides(cpu, gpu, "scaled losses", scaled_losses, sizes[i % 2], 2e-6);
    }
    cpu->rounds = gpu->rounds = gpu->stored = STORED_FLOAT32;
}

void check_steps(struct side *cpu, struct side *gpu)
{
    static const int64_t sizes[][4] = {{0, 0}, {1, 0}, {700, 3}, {4999, 0}, {700, 3, 1024}, {700, 0, 65536}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        compare_sides(cpu, gpu, "judged step", judged_step, sizes[i], 0);
    check_values(gpu);
    check_loss_scale(gpu);
    check_scaled_losses(cpu, gpu);
    check_refusal(gpu, NAN, "an update behind a loss that is no number changes nothing");
    check_refusal(gpu, INFINITY, "likewise an infinite one");
}
