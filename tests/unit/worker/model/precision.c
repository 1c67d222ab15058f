/* SPDX-License-Identifier: Apache-2.0
 *
 * bfloat16 and float16: what is rounded and what is not, against a product
 * computed by hand; and how far whole models are from their float32.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/worker/model/bench.h"
#include "worker/device/bfloat16.h"
#include "worker/device/float16.h"

#define U FIELD_UNSET

static struct bench open_bench(const struct model_spec *model, int64_t examples, enum precision precision)
{
    struct bench b = bench_open(model, examples, 2, precision);
    b.scale = 1.0f / (float)examples;
    return b;
}

static double distance(const float *a, const float *b, int64_t count)
{
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < count; i++) {
        difference += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        norm += (double)b[i] * (double)b[i];
    }
    return sqrt(difference / norm);
}

/* ---------------------------------------------------------------- by hand */

enum { EXAMPLES = 6, IN = 19, HIDDEN = 13, OUT = 3 };

#define DENSE(name_of, width)                                                                                          \
    {                                                                                                                  \
        .name = name_of, .type = LAYER_DENSE, .units = width, .filters = U, .kernel = U, .stride = U, .padding = U,    \
        .size = U, .heads = U, .bias = true                                                                            \
    }
static struct layer_spec dense_layers[] = {
    DENSE("a", HIDDEN),
    {.type = LAYER_TANH, .units = U, .filters = U, .kernel = U, .stride = U, .padding = U, .size = U, .heads = U},
    DENSE("b", OUT),
};
static const struct model_spec dense = {
    .input_shape = {IN}, .input_rank = 1, .layers = dense_layers, .layer_count = 3, .loss = LOSS_MEAN_SQUARED_ERROR};

/* As the precision under test has it. */
static float (*round_number)(float x);

/* y[rows,n] = x[rows,k] w[n,k]^T + bias, rounded. */
static void product(int rows, int n, int k, const float *x, const float *weight, const float *bias, float *y)
{
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < n; j++) {
            double sum = (double)bias[j];
            for (int i = 0; i < k; i++)
                sum += (double)x[r * k + i] * (double)weight[j * k + i];
            y[r * n + j] = round_number((float)sum);
        }
}

/* dw[n,k] and db[n], which are not. */
static void weight_gradient(int rows, int n, int k, const float *dy, const float *x, float *dweight, float *dbias)
{
    for (int j = 0; j < n; j++) {
        double bias = 0;
        for (int r = 0; r < rows; r++)
            bias += (double)dy[r * n + j];
        dbias[j] = (float)bias;
        for (int i = 0; i < k; i++) {
            double sum = 0;
            for (int r = 0; r < rows; r++)
                sum += (double)dy[r * n + j] * (double)x[r * k + i];
            dweight[j * k + i] = (float)sum;
        }
    }
}

static const float *parameter(const struct bench *b, const char *name)
{
    return b->parameters + parameter_layout_find(graph_layout(b->graph), name)->offset;
}

static const float *gradient(const struct bench *b, const char *name)
{
    return b->gradients + parameter_layout_find(graph_layout(b->graph), name)->offset;
}

static void rounded(const float *from, int count, float *to)
{
    for (int i = 0; i < count; i++)
        to[i] = round_number(from[i]);
}

static void check_by_hand(enum precision precision)
{
    struct bench b = open_bench(&dense, EXAMPLES, precision);
    float x[EXAMPLES * IN], wa[HIDDEN * IN], wb[OUT * HIDDEN], a[EXAMPLES * HIDDEN], t[EXAMPLES * HIDDEN];
    float ba[HIDDEN], y[EXAMPLES * OUT], dy[EXAMPLES * OUT], dt[EXAMPLES * HIDDEN], da[EXAMPLES * HIDDEN];
    float dwa[HIDDEN * IN], dba[HIDDEN], dwb[OUT * HIDDEN], dbb[OUT];
    const float *targets = b.targets;
    double loss = 0;
    for (int i = 0; i < HIDDEN; i++) /* of more digits than are read */
        ((float *)parameter(&b, "a.bias"))[i] = bench_number(9, i);
    bench_backward(&b, false);

    rounded(b.inputs, EXAMPLES * IN, x);
    rounded(parameter(&b, "a.weight"), HIDDEN * IN, wa);
    rounded(parameter(&b, "b.weight"), OUT * HIDDEN, wb);
    rounded(parameter(&b, "a.bias"), HIDDEN, ba);
    product(EXAMPLES, HIDDEN, IN, x, wa, ba, a);
    for (int i = 0; i < EXAMPLES * HIDDEN; i++)
        t[i] = round_number(tanhf(a[i]));
    product(EXAMPLES, OUT, HIDDEN, t, wb, parameter(&b, "b.bias"), y);
    for (int i = 0; i < EXAMPLES * OUT; i++) {
        loss += ((double)y[i] - (double)targets[i]) * ((double)y[i] - (double)targets[i]) / OUT;
        dy[i] = round_number(2.0f * (y[i] - targets[i]) / (float)OUT / (float)EXAMPLES);
    }
    for (int r = 0; r < EXAMPLES; r++)
        for (int i = 0; i < HIDDEN; i++) {
            double sum = 0;
            for (int j = 0; j < OUT; j++)
                sum += (double)dy[r * OUT + j] * (double)wb[j * HIDDEN + i];
            dt[r * HIDDEN + i] = round_number((float)sum);
        }
    for (int i = 0; i < EXAMPLES * HIDDEN; i++)
        da[i] = round_number(dt[i] * (1.0f - t[i] * t[i]));
    weight_gradient(EXAMPLES, OUT, HIDDEN, dy, t, dwb, dbb);
    weight_gradient(EXAMPLES, HIDDEN, IN, da, x, dwa, dba);

    cr_expect_leq(fabs(b.sums.loss - loss), 1e-6 * loss, "%g, expected %g", b.sums.loss, loss);
    cr_expect_leq(distance(gradient(&b, "b.weight"), dwb, OUT * HIDDEN), 1e-6);
    cr_expect_leq(distance(gradient(&b, "b.bias"), dbb, OUT), 1e-6);
    cr_expect_leq(distance(gradient(&b, "a.weight"), dwa, HIDDEN * IN), 1e-6);
    cr_expect_leq(distance(gradient(&b, "a.bias"), dba, HIDDEN), 1e-6);
    bench_close(&b);
}

Test(precision, values_and_weights_are_rounded_gradients_of_weights_are_not)
{
    round_number = bfloat16_round;
    check_by_hand(PRECISION_BFLOAT16);
    round_number = float16_round;
    check_by_hand(PRECISION_FLOAT16);
}

/* A power of two; but what would be too small for float16 without it is not lost. */
Test(precision, gradients_carry_the_scale_of_the_loss)
{
    struct bench plain = open_bench(&dense, EXAMPLES, PRECISION_FLOAT16);
    struct bench scaled = open_bench(&dense, EXAMPLES, PRECISION_FLOAT16);
    int64_t elements = graph_layout(plain.graph)->elements;
    scaled.loss_scale = 1024;
    bench_backward(&plain, false);
    bench_backward(&scaled, false);
    cr_expect_eq(plain.sums.loss, scaled.sums.loss);
    for (int64_t i = 0; i < elements; i++)
        scaled.gradients[i] /= 1024;
    cr_expect_leq(distance(plain.gradients, scaled.gradients, elements), 1e-3);
    plain.scale = scaled.scale = 1e-9f;
    scaled.loss_scale = 16777216;
    bench_backward(&plain, false);
    bench_backward(&scaled, false);
    for (int64_t i = 0; i < elements; i++)
        cr_expect_eq(plain.gradients[i], 0);
    cr_expect_neq(scaled.gradients[0], 0);
    scaled.scale = 1e6f;
    bench_backward(&scaled, false);
    cr_expect_not(isfinite(scaled.gradients[0]), "%g", scaled.gradients[0]);
    bench_close(&plain);
    bench_close(&scaled);
}

/* ---------------------------------------------------------------- the copy of the weights */

/* Passes of one step. The second makes no copy of the weights, but reads the first one's, even if the parameters have changed. */
static void check_standing(struct graph_options options)
{
    struct bench b = bench_open_graph(options, 2);
    const struct parameter_layout *layout = graph_layout(b.graph);
    size_t bytes = (size_t)layout->elements * sizeof(float);
    float *first = malloc(bytes);
    struct graph_pass pass = bench_pass(&b);
    for (int i = 0; i < 3; i++) {
        pass.weights_stand = i == 1;
        cr_assert_eq(graph_forward_backward(b.graph, b.stream, &pass, NULL), 0);
        cr_assert_eq(device_stream_synchronise(b.stream, NULL), 0);
        if (i == 0)
            memcpy(first, b.gradients, bytes);
        else
            cr_expect_eq(memcmp(first, b.gradients, bytes) == 0, i == 1);
        for (int64_t k = 0; k < layout->elements; k++)
            b.parameters[k] += 0.25f;
    }
    free(first);
    bench_close(&b);
}

Test(precision, a_copy_of_weights_that_stand_is_not_made_again)
{
    check_standing((struct graph_options){.model = &dense, .max_examples = EXAMPLES, .precision = PRECISION_BFLOAT16});
    check_standing((struct graph_options){.model = &dense, .max_examples = EXAMPLES, .precision = PRECISION_FLOAT16});
}

/* ---------------------------------------------------------------- whole models */

static const struct model_spec transformer = {
    .preset = PRESET_GPT_BYTES, .width = 24, .depth = 2, .heads = 3, .context = 11};
static const struct model_spec lenet = {.preset = PRESET_LENET, .depth = U};
static const struct model_spec resnet = {.preset = PRESET_RESNET20, .depth = U};
static const struct model_spec *const models[] = {&transformer, &lenet, &resnet};
enum { MODELS = sizeof models / sizeof *models };

/* Roundings add up from layer to layer, and normalisations over a few examples make much of them. */
static const double most[MODELS] = {0.03, 0.03, 0.3};

static void check_nearness(enum precision precision)
{
    for (int m = 0; m < MODELS; m++) {
        struct bench exact = open_bench(models[m], 4, PRECISION_FLOAT32);
        struct bench b = open_bench(models[m], 4, precision);
        bench_backward(&exact, false);
        bench_backward(&b, false);
        const struct parameter_layout *layout = graph_layout(b.graph);
        double off = distance(b.gradients + layout->statistics, exact.gradients + layout->statistics,
                              layout->elements - layout->statistics);
        cr_expect(off > 1e-4 && off < most[m], "model %d: gradients are off by %g", m, off);
        off = fabs(b.sums.loss - exact.sums.loss) / exact.sums.loss;
        cr_expect(off > 0 && off < 1e-2, "model %d: the loss is off by %g", m, off);
        bench_close(&b);
        bench_close(&exact);
    }
}

Test(precision, tf32_is_float32_on_a_cpu)
{
    struct bench exact = open_bench(&transformer, 4, PRECISION_FLOAT32);
    struct bench b = open_bench(&transformer, 4, PRECISION_TF32);
    bench_backward(&exact, false);
    bench_backward(&b, false);
    cr_expect_arr_eq(b.gradients, exact.gradients, (size_t)graph_layout(b.graph)->elements * sizeof(float));
    cr_expect_eq(b.sums.loss, exact.sums.loss);
    bench_close(&b);
    bench_close(&exact);
}

Test(precision, gradients_are_near_those_of_float32)
{
    check_nearness(PRECISION_BFLOAT16);
    check_nearness(PRECISION_FLOAT16);
}

Test(precision, accumulated_gradients_have_the_bits_of_added_ones)
{
    for (int m = 0; m < MODELS; m++) {
        struct bench b = open_bench(models[m], 3, PRECISION_BFLOAT16);
        int64_t elements = graph_layout(b.graph)->elements;
        float *alone = malloc((size_t)elements * sizeof *alone);
        bench_backward(&b, false);
        memcpy(alone, b.gradients, (size_t)elements * sizeof *alone);
        bench_backward(&b, true);
        for (int64_t i = 0; i < elements; i++)
            cr_assert_eq(b.gradients[i], alone[i] + alone[i], "model %d, gradient %lld", m, (long long)i);
        free(alone);
        bench_close(&b);
    }
}

Test(precision, the_plan_has_room_for_rounded_parameters)
{
    struct memory_plan plans[2];
    for (int p = 0; p < 2; p++) {
        struct bench b = open_bench(&lenet, 4, p ? PRECISION_BFLOAT16 : PRECISION_FLOAT32);
        graph_memory_plan(b.graph, 0, &plans[p]);
        cr_expect_eq(graph_precision(b.graph), p ? PRECISION_BFLOAT16 : PRECISION_FLOAT32);
        bench_close(&b);
    }
    cr_expect_geq(plans[1].bytes[MEMORY_WORKSPACE],
                  plans[0].bytes[MEMORY_WORKSPACE] + plans[0].bytes[MEMORY_PARAMETERS]);
    cr_expect_eq(plans[1].bytes[MEMORY_PARAMETERS], plans[0].bytes[MEMORY_PARAMETERS]);
}
