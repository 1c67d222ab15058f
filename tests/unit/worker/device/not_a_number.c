/* SPDX-License-Identifier: Apache-2.0
 *
 * A NaN goes on to the loss, through everything that compares: rectifiers, maxima, the softmax.
 */
#include "tests/unit/worker/device/operation_check.h"

static const char *const sets[] = {"avx512", "avx2", "portable"};
#define SETS (sizeof sets / sizeof *sets)

/* With that instruction set, where this processor has it: of `count` outputs those that `wanted` names are NaN, and no others. */
static void check_nans_with(const char *set, enum device_operation operation, const void *arguments, const float *y,
                            int64_t count, bool (*wanted)(int64_t i))
{
    if (!gemm_kernel_choose(set))
        return;
    check_run(operation, arguments, 2, set);
    for (int64_t i = 0; i < count; i++)
        cr_assert_eq(isnan(y[i]) != 0, wanted(i), "%s: element %lld is %g", set, (long long)i, (double)y[i]);
}

static void check_nans(enum device_operation operation, const void *arguments, const float *y, int64_t count,
                       bool (*wanted)(int64_t i))
{
    for (size_t s = 0; s < SETS; s++)
        check_nans_with(sets[s], operation, arguments, y, count, wanted);
}

static bool is_at_41(int64_t i)
{
    return i == 41;
}

Test(not_a_number, passes_rectifiers, .description = "elementwise")
{
    enum { COUNT = 100 };
    float *x = check_numbers(COUNT, 1), *b = check_numbers(COUNT, 2), *y = check_numbers(COUNT, 3);
    x[41] = NAN;
    check_nans(OPERATION_relu_forward, &(struct relu_forward){COUNT, x, y}, y, COUNT, is_at_41);
    check_nans(OPERATION_add_forward, &(struct add_forward){COUNT, x, b, y, ACTIVATION_RELU}, y, COUNT, is_at_41);
    free(x), free(b), free(y);
}

enum { M = 300, N = 70, K = 66 };

static bool is_in_row_5(int64_t i)
{
    return i / N == 5;
}

/* By the library and by our own kernel. */
static void check_dense_layers(const char *set)
{
    float *x = check_numbers(M * K, 1), *w = check_numbers(N * K, 2), *b = check_numbers(N, 3),
          *y = check_numbers(M * N, 4);
    x[5 * K + 60] = NAN;
    check_nans_with(set, OPERATION_dense_forward,
                    &(struct dense_forward){M, N, K, x, w, b, y, .activation = ACTIVATION_RELU}, y, M * N, is_in_row_5);
    check_nans_with(set, OPERATION_dense_forward,
                    &(struct dense_forward){20, N, K, x, w, b, y, .activation = ACTIVATION_RELU}, y, 20 * N,
                    is_in_row_5);
    free(x), free(w), free(b), free(y);
}

/* A test each, which is a process: the library keeps to the first set that it is asked for. */
Test(not_a_number, passes_dense_layers_avx512)
{
    check_dense_layers("avx512");
}

Test(not_a_number, passes_dense_layers_avx2)
{
    check_dense_layers("avx2");
}

Test(not_a_number, passes_dense_layers_portable)
{
    check_dense_layers("portable");
}

static bool is_first_pixel(int64_t i)
{
    return i < 20;
}

/* Twenty filters, as many as go through the kernels' lines and leave a rest. */
Test(not_a_number, passes_convolutions)
{
    const struct conv2d_shape shape = {1, 8, 8, 3, 20, 3, 1, 0, 6, 6};
    float *x = check_numbers(8 * 8 * 3, 1), *w = check_numbers(20 * 27, 2), *b = check_numbers(20, 3);
    float *y = check_numbers(36 * 20, 4), *workspace = check_numbers(conv2d_workspace(&shape), 5);
    x[0] = NAN;
    check_nans(OPERATION_conv2d_forward, &(struct conv2d_forward){shape, x, w, b, y, workspace, ACTIVATION_RELU, false},
               y, 36 * 20, is_first_pixel);
    free(x), free(w), free(b), free(y), free(workspace);
}

static bool is_in_the_first_column(int64_t i)
{
    return i % 17 == 0;
}

Test(not_a_number, passes_batch_norm)
{
    enum { ROWS = 6, C = 17 };
    float *x = check_numbers(ROWS * C, 1), *w = check_numbers(C, 2), *b = check_numbers(C, 3),
          *y = check_numbers(ROWS * C, 4);
    float *mean = check_numbers(C, 5), variance[C];
    for (int i = 0; i < C; i++)
        variance[i] = 1;
    mean[0] = NAN;
    check_nans(OPERATION_batch_norm_inference,
               &(struct batch_norm_inference){ROWS, C, x, w, b, mean, variance, y, ACTIVATION_RELU, NULL}, y, ROWS * C,
               is_in_the_first_column);
    free(x), free(w), free(b), free(y), free(mean);
}

static bool is_first(int64_t i)
{
    return i == 0;
}

/* Wherever it lies in the window, the usual one and another. */
static void check_maximum(int64_t size, int64_t channels)
{
    const struct pool_shape shape = {1, 2 * size, 2 * size, channels, size, size, 0, 2, 2};
    for (int64_t at = 0; at < size * size; at++) {
        float *x = check_numbers(4 * size * size * channels, 1), *y = check_numbers(4 * channels, 2);
        x[(at / size * 2 * size + at % size) * channels] = NAN;
        check_nans(OPERATION_max_pool_forward, &(struct max_pool_forward){shape, x, y}, y, 4 * channels, is_first);
        free(x), free(y);
    }
}

Test(not_a_number, wins_a_maximum)
{
    for (int64_t size = 2; size <= 3; size++) {
        check_maximum(size, 1);
        check_maximum(size, 40); /* more than a vector of them */
    }
}

Test(not_a_number, reaches_the_loss)
{
    enum { ROWS = 2, CLASSES = 20 };
    for (int at = 0; at < CLASSES; at++) {
        float *logits = check_numbers(ROWS * CLASSES, 1);
        int32_t targets[ROWS] = {3, 17};
        double workspace[2 * ROWS];
        struct loss_sums sums;
        logits[at] = NAN;
        check_run(OPERATION_softmax_cross_entropy,
                  &(struct softmax_cross_entropy){.rows = ROWS,
                                                  .classes = CLASSES,
                                                  .logits = logits,
                                                  .targets = targets,
                                                  .workspace = workspace,
                                                  .sums = &sums},
                  1, NULL);
        cr_assert(isnan(sums.loss), "logit %d: %g", at, sums.loss);
        free(logits);
    }
}
