/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/data/cifar10.h"

#include "worker/data/pixels.h"

int cifar10_count(size_t length, int64_t *ret_records, struct error *error)
{
    if (length == 0 || length % CIFAR10_RECORD != 0)
        return error_set(error, ERROR_CORRUPT,
                         "the file has %zu bytes, which is not a multiple of the %d bytes of an image with its label; "
                         "use the binary version of CIFAR-10",
                         length, CIFAR10_RECORD);
    *ret_records = (int64_t)(length / CIFAR10_RECORD);
    return 0;
}

uint8_t cifar10_label(const uint8_t *record)
{
    return record[0];
}

void cifar10_pixels(const uint8_t *record, float values[CIFAR10_VALUES])
{
    for (int64_t p = 0; p < CIFAR10_PIXELS; p++)
        for (int64_t c = 0; c < CIFAR10_CHANNELS; c++)
            values[p * CIFAR10_CHANNELS + c] = pixel_value(record[1 + c * CIFAR10_PIXELS + p]);
}
