/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one operation on a fresh CPU device and waits, for tests of operations:
 * with a given number of threads and instruction set.
 */
#ifndef COXSWAIN_TESTS_OPERATION_CHECK_H
#define COXSWAIN_TESTS_OPERATION_CHECK_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "worker/device/cpu/gemm_kernel.h"
#include "worker/device/device.h"

/* Numbers in [-1, 1) that depend on `seed` only. */
static inline float *check_numbers(int64_t count, uint32_t seed)
{
    float *x = calloc((size_t)count + 1, sizeof *x);
    uint32_t state = seed * 2654435761u + 12345u;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(state >> 8) / 8388608.0f - 1.0f;
    }
    return x;
}

static inline void check_run(enum device_operation operation, const void *arguments, int threads,
                             const char *arithmetic)
{
    struct error error = ERROR_INIT;
    struct device *device = NULL;
    struct device_stream *stream = NULL;
    struct device_options options = {.type = DEVICE_TYPE_CPU, .threads = threads, .arithmetic = arithmetic};
    cr_assert_eq(device_open(&options, &device, &error), 0, "%s", error.message);
    cr_assert_eq(device_stream_new(device, &stream, &error), 0, "%s", error.message);
    device_launch(stream, operation, arguments);
    cr_assert_eq(device_stream_synchronise(stream, &error), 0, "%s", error.message);
    device_stream_free(stream);
    device_close(device);
}

static inline void check_close(const float *found, const float *expected, int64_t count, float tolerance)
{
    for (int64_t i = 0; i < count; i++)
        cr_assert_leq(fabsf(found[i] - expected[i]), tolerance * (1.0f + fabsf(expected[i])),
                      "element %lld: %g, expected %g", (long long)i, (double)found[i], (double)expected[i]);
}

/* Runs with every instruction set of this processor, and with 1, 2 and 3 threads. `output` must be near `expected` each time, and have
 * the same bits for any number of threads with one instruction set. */
static inline void check_everywhere(enum device_operation operation, const void *arguments, float *output,
                                    const float *start, const float *expected, int64_t count, float tolerance)
{
    static const char *const sets[] = {"avx512", "avx2", "portable"}; /* the library computes with the first alone */
    size_t bytes = (size_t)count * sizeof *output;
    float *first = malloc(bytes + 1);
    for (size_t s = 0; s < 3; s++) {
        if (!gemm_kernel_choose(sets[s]))
            continue;
        for (int threads = 1; threads <= 3; threads++) {
            memcpy(output, start, bytes);
            check_run(operation, arguments, threads, sets[s]);
            check_close(output, expected, count, tolerance);
            if (threads == 1)
                memcpy(first, output, bytes);
            cr_assert_eq(memcmp(first, output, bytes), 0, "%s: the bits differ with %d threads", sets[s], threads);
        }
    }
    free(first);
}

#endif
