/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/optimizer/optimizer.h"

#include <criterion/criterion.h>
#include <math.h>

#include "worker/optimizer/gradient_norm.h"
#include "worker/optimizer/training_state.h"

#define COUNT 5

struct bench {
    struct device *device;
    struct device_stream *stream;
    float p[COUNT], g[COUNT], first[COUNT], second[COUNT];
};

static struct bench open_bench(void)
{
    struct bench b = {.p = {1, -2, 3, 0.5f, 0}, .g = {0.1f, 0.2f, -0.3f, 0, 1}};
    cr_assert_eq(device_open(&(struct device_options){.type = DEVICE_TYPE_CPU, .threads = 2}, &b.device, NULL), 0);
    cr_assert_eq(device_stream_new(b.device, &b.stream, NULL), 0);
    return b;
}

static void update(struct bench *b, const struct optimizer_spec *spec, int64_t step)
{
    struct optimizer_range range = {.elements = COUNT,
                                    .parameters = b->p,
                                    .slots = {b->first, b->second},
                                    .gradients = b->g,
                                    .step = step,
                                    .learning_rate = spec->learning_rate,
                                    .gradient_scale = 0.5};
    optimizer_update(b->stream, spec, &range);
    cr_assert_eq(device_stream_synchronise(b->stream, NULL), 0);
}

static void close_bench(struct bench *b)
{
    device_stream_free(b->stream);
    device_close(b->device);
}

Test(optimizer, sgd_keeps_a_velocity)
{
    struct optimizer_spec spec = {.type = OPTIMIZER_SGD, .learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01};
    struct bench b = open_bench();
    double p[COUNT], v[COUNT] = {0};
    for (int i = 0; i < COUNT; i++)
        p[i] = (double)b.p[i];
    for (int64_t step = 1; step <= 3; step++) {
        update(&b, &spec, step);
        for (int i = 0; i < COUNT; i++) {
            v[i] = 0.9 * v[i] + 0.5 * (double)b.g[i] + 0.01 * p[i];
            p[i] -= 0.1 * v[i];
            cr_assert_float_eq((double)b.p[i], p[i], 1e-5);
        }
    }
    cr_assert_eq(optimizer_slot_count(&spec), 1);
    cr_assert_str_eq(optimizer_slot_name(&spec, 0), "momentum");
    close_bench(&b);
}

Test(optimizer, adamw_corrects_its_bias_and_decays_apart)
{
    struct optimizer_spec spec = {.type = OPTIMIZER_ADAMW,
                                  .learning_rate = 0.01,
                                  .beta1 = 0.9,
                                  .beta2 = 0.999,
                                  .epsilon = 1e-8,
                                  .weight_decay = 0.1};
    struct bench b = open_bench();
    double p[COUNT], m[COUNT] = {0}, v[COUNT] = {0};
    for (int i = 0; i < COUNT; i++)
        p[i] = (double)b.p[i];
    for (int64_t step = 1; step <= 4; step++) {
        update(&b, &spec, step);
        for (int i = 0; i < COUNT; i++) {
            double g = 0.5 * (double)b.g[i];
            m[i] = 0.9 * m[i] + 0.1 * g;
            v[i] = 0.999 * v[i] + 0.001 * g * g;
            double m_hat = m[i] / (1 - pow(0.9, (double)step)), v_hat = v[i] / (1 - pow(0.999, (double)step));
            p[i] = p[i] * (1 - 0.01 * 0.1) - 0.01 * m_hat / (sqrt(v_hat) + 1e-8);
            cr_assert_float_eq((double)b.p[i], p[i], 1e-5);
        }
    }
    cr_assert_eq(optimizer_slot_count(&spec), 2);
    close_bench(&b);
}

#define LONG_COUNT 1003

/* Long vectors are updated many elements at a time: what an element becomes must not follow from where it stands. */
Test(optimizer, adamw_gives_an_element_the_same_bits_alone_and_among_many)
{
    struct optimizer_spec spec = {
        .type = OPTIMIZER_ADAMW, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.1};
    struct bench b = open_bench();
    static float g[LONG_COUNT], together[3][LONG_COUNT], alone[3][LONG_COUNT]; /* parameter and slots */
    for (int i = 0; i < LONG_COUNT; i++) {
        g[i] = i % 7 == 0 ? 0 : (float)(i * i % 1009 - 500) * 1e-3f;
        together[0][i] = alone[0][i] = (float)(i % 13) - 6;
    }
    struct optimizer_range range = {.learning_rate = 0.01, .gradient_scale = 0.7};
    for (range.step = 1; range.step <= 3; range.step++) {
        range.elements = LONG_COUNT;
        range.parameters = together[0];
        range.gradients = g;
        range.slots[0] = together[1];
        range.slots[1] = together[2];
        optimizer_update(b.stream, &spec, &range);
        range.elements = 1;
        for (int i = 0; i < LONG_COUNT; i++) {
            range.parameters = &alone[0][i];
            range.gradients = &g[i];
            range.slots[0] = &alone[1][i];
            range.slots[1] = &alone[2][i];
            optimizer_update(b.stream, &spec, &range);
        }
        cr_assert_eq(device_stream_synchronise(b.stream, NULL), 0);
        cr_assert_arr_eq(together, alone, sizeof alone);
    }
    close_bench(&b);
}

Test(optimizer, the_norm_is_summed_over_fixed_blocks_and_clips)
{
    struct bench b = open_bench();
    enum { MANY = 3 * SQUARE_SUM_BLOCK + 5 };
    static float x[MANY];
    double sums[4] = {0};
    for (int i = 0; i < MANY; i++)
        x[i] = 0.5f;
    gradient_norm_launch(b.stream, x, MANY, sums);
    cr_assert_eq(device_stream_synchronise(b.stream, NULL), 0);
    cr_assert_eq(gradient_norm_blocks(MANY), 4);
    double norm = gradient_norm_finish(sums, MANY);
    cr_assert_float_eq(norm, sqrt(0.25 * MANY), 1e-9);
    cr_assert_float_eq(gradient_clip_factor(norm, 1.0), 1.0 / norm, 1e-12);
    cr_assert_eq(gradient_clip_factor(norm, 1e6), 1.0);
    cr_assert_eq(gradient_clip_factor(norm, DECIMAL_UNSET), 1.0);
    close_bench(&b);
}

Test(optimizer, a_state_is_its_spans)
{
    struct bench b = open_bench();
    struct optimizer_spec spec = {.type = OPTIMIZER_ADAMW};
    struct parameter_tensor tensor = {
        .name = "a.weight", .shape = {3, 4}, .rank = 2, .elements = 12, .start = START_NORMAL, .deviation = 0.1f};
    struct parameter_layout layout = {&tensor, 1, 12, 0, 0};
    struct training_state state, other;
    cr_assert_eq(training_state_init(&state, b.device, &layout, &spec, 7, NULL), 0);
    cr_assert_eq(training_state_init(&other, b.device, &layout, &spec, 7, NULL), 0);
    struct state_span spans[TRAINING_STATE_SPANS_MAX];
    cr_assert_eq(training_state_spans(&state, spans), 4);
    cr_assert_str_eq(spans[3].name, "adam.v");
    cr_assert_eq(spans[1].length, 48);
    cr_assert_eq(training_state_digest(&state), training_state_digest(&other));
    other.progress.step = 1;
    cr_assert_neq(training_state_digest(&state), training_state_digest(&other));
    training_state_release(&state);
    training_state_release(&other);
    close_bench(&b);
}

Test(optimizer, running_statistics_take_their_step_as_it_is)
{
    struct bench b = open_bench();
    struct optimizer_spec spec = {.type = OPTIMIZER_SGD, .momentum = 0, .weight_decay = 0.5};
    float parameters[4] = {1, 1, 1, 1}, gradients[4] = {2, 2, 2, 2};
    for (int64_t offset = 0; offset < 4; offset += 2) /* the boundary lies behind the first range, inside the second */
        optimizer_update(b.stream, &spec,
                         &(struct optimizer_range){.offset = offset,
                                                   .elements = 2,
                                                   .statistics = 3,
                                                   .parameters = parameters,
                                                   .gradients = gradients,
                                                   .step = 1,
                                                   .learning_rate = 0.1,
                                                   .gradient_scale = 0.5});
    cr_assert_eq(device_stream_synchronise(b.stream, NULL), 0);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(parameters[i], -1.0f);
    cr_assert_float_eq(parameters[3], 1 - 0.1 * (2 * 0.5 + 0.5), 1e-6);
    close_bench(&b);
}
