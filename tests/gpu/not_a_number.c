/* SPDX-License-Identifier: Apache-2.0
 *
 * A NaN passes rectifiers and wins maxima, on the GPU as on the CPU: it reaches
 * the same outputs, and no others.
 */
#include <math.h>

#include "tests/gpu/check.h"

/* Numbers with a NaN among them. */
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

static void batch_norm(struct side *s)
{
    float *variance = side_numbers(s, 17, 6);
    device_relu_forward(s->stream, &(struct relu_forward){17, variance, variance}); /* it is not negative */
    device_batch_norm_inference(
        s->stream, &(struct batch_norm_inference){6, 17, numbers_with_nan(s, 6 * 17, 20), side_numbers(s, 17, 2),
                                                  side_numbers(s, 17, 3), side_numbers(s, 17, 4), variance,
                                                  side_output(s, 6 * 17), ACTIVATION_RELU});
}

static void max_pool(struct side *s)
{
    const struct pool_shape shape = {1, 6, 6, 2, 3, 2, 1, 3, 3};
    device_max_pool_forward(
        s->stream, &(struct max_pool_forward){shape, numbers_with_nan(s, 6 * 6 * 2, 29), side_output(s, 3 * 3 * 2)});
}

static void run(struct side *side, void (*function)(struct side *), float *ret_values)
{
    struct error error = ERROR_INIT;
    function(side);
    must(device_stream_synchronise(side->stream, &error), &error);
    side_get(side, ret_values, side->outputs[0].memory, side->outputs[0].count * (int64_t)sizeof *ret_values);
}

static void check(struct side *cpu, struct side *gpu, const char *name, void (*function)(struct side *))
{
    float expected[2048], found[2048];
    int64_t wrong = 0, nans = 0;
    run(cpu, function, expected);
    run(gpu, function, found);
    for (int64_t i = 0; i < cpu->outputs[0].count; i++) {
        nans += isnan(expected[i]) != 0;
        wrong += (isnan(expected[i]) != 0) != (isnan(found[i]) != 0);
    }
    verdict(nans > 0 && wrong == 0, name, "%lld outputs are NaN on one side alone, of %lld on the CPU",
            (long long)wrong, (long long)nans);
    side_clear(cpu);
    side_clear(gpu);
}

void check_not_a_number(struct side *cpu, struct side *gpu)
{
    check(cpu, gpu, "a NaN passes relu", relu);
    check(cpu, gpu, "a NaN passes add with a rectifier", add);
    check(cpu, gpu, "a NaN passes dense with a rectifier", dense);
    check(cpu, gpu, "a NaN passes conv2d with a rectifier", convolution);
    check(cpu, gpu, "a NaN passes batch_norm with a rectifier", batch_norm);
    check(cpu, gpu, "a NaN wins max_pool", max_pool);
}
