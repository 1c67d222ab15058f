/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <float.h>
#include <string.h>

#include "worker/device/device.h"

#define COUNT 100000 /* enough for every thread to get a piece */

/* They used to slow a crew that had learned its data to a third of its pace. */
Test(subnormals, count_as_zero_on_every_thread)
{
    const struct device_options options = {.type = DEVICE_TYPE_CPU, .threads = 2};
    struct device *device;
    struct device_stream *stream;
    void *memory;
    cr_assert_eq(device_open(&options, &device, NULL), 0);
    cr_assert_eq(device_stream_new(device, &stream, NULL), 0);
    cr_assert_eq(device_allocate(device, MEMORY_SHARED, 2 * COUNT * sizeof(float), &memory, NULL), 0);
    float *parameters = memory, *gradients = parameters + COUNT;
    for (int i = 0; i < COUNT; i++)
        gradients[i] = FLT_MIN / 4;
    const struct sgd_update update = {
        .count = COUNT, .parameters = parameters, .gradients = gradients, .rate = 1, .gradient_scale = 1};
    device_sgd_update(stream, &update);
    cr_assert_eq(device_stream_synchronise(stream, NULL), 0);
    for (int i = 0; i < COUNT; i++)
        cr_assert_eq(parameters[i], 0, "element %d", i);
    device_free(device, memory);
    device_stream_free(stream);
    device_close(device);
}
