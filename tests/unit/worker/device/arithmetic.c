/* SPDX-License-Identifier: Apache-2.0
 *
 * A device computes with the arithmetic of another: a product in the library has the bits of a device that was opened with this
 * arithmetic. Each case runs in a process of its own, in which the library has not chosen yet.
 */
#include "worker/coordination/arithmetic.h"
#include "tests/unit/worker/device/operation_check.h"
#include "worker/device/cpu/onednn.h"

enum { M = 300, N = 128, K = 100 };

static void multiply_on(struct device *device, float *y)
{
    struct error error = ERROR_INIT;
    struct device_stream *stream = NULL;
    float *x = check_numbers(M * K, 1), *w = check_numbers(N * K, 2), *b = check_numbers(N, 3);
    struct dense_forward op = {M, N, K, x, w, b, y, .activation = ACTIVATION_NONE};
    cr_assert_eq(device_stream_new(device, &stream, &error), 0, "%s", error.message);
    device_launch(stream, OPERATION_dense_forward, &op);
    cr_assert_eq(device_stream_synchronise(stream, &error), 0, "%s", error.message);
    device_stream_free(stream);
    free(x), free(w), free(b);
}

static struct device *open_with(const char *arithmetic)
{
    struct error error = ERROR_INIT;
    struct device *device = NULL;
    struct device_options options = {.type = DEVICE_TYPE_CPU, .threads = 1, .arithmetic = arithmetic};
    cr_assert_eq(device_open(&options, &device, &error), 0, "%s", error.message);
    return device;
}

static void check_change_to(const char *arithmetic)
{
    struct error error = ERROR_INIT;
    struct device *best = open_with(NULL), *other = open_with(arithmetic);
    float *changed = check_numbers(M * N, 4), *opened = check_numbers(M * N, 5);
    cr_assert_eq(device_set_arithmetic(best, arithmetic, &error), 0, "%s", error.message);
    cr_assert_str_eq(device_arithmetic(best), arithmetic);
    multiply_on(best, changed);
    cr_assert(onednn_computes_with(arithmetic), "the library is limited likewise");
    multiply_on(other, opened);
    cr_assert_eq(memcmp(changed, opened, M * N * sizeof *opened), 0);
    device_close(best), device_close(other);
    free(changed), free(opened);
}

Test(device_arithmetic, a_device_takes_that_of_a_lesser_processor)
{
    check_change_to("portable");
}

Test(device_arithmetic, a_device_takes_avx2)
{
    if (!gemm_kernel_choose("avx2"))
        cr_skip("this processor has no AVX2");
    check_change_to("avx2");
}

Test(device_arithmetic, what_it_lacks_is_refused)
{
    struct error error = ERROR_INIT;
    struct device *device = open_with(NULL);
    cr_assert_eq(device_set_arithmetic(device, "sm_90", &error), -1);
    cr_assert_eq(error.kind, ERROR_DEVICE);
    cr_assert_not_null(strstr(error.message, "has no \"sm_90\" arithmetic"), "%s", error.message);
    device_close(device);
}

/* Crews derive a processor's arithmetics from the name of its best one. */
Test(device_arithmetic, a_processor_has_all_below_its_best)
{
    static const char *const words[] = {"avx512", "avx2", "portable"};
    const char *best = gemm_kernel_choose(NULL)->name;
    for (size_t i = 0; i < 3; i++)
        cr_assert_eq(gemm_kernel_choose(words[i]) == NULL, arithmetic_is_lacking(best, words[i]), "%s", words[i]);
}
