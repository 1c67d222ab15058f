/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes are either whole records, with pixels in [0, 1], or an error.
 */
#include <stdlib.h>

#include "worker/data/cifar10.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void read_record(const uint8_t *record)
{
    float values[CIFAR10_VALUES];
    cifar10_pixels(record, values);
    for (int i = 0; i < CIFAR10_VALUES; i++)
        if (!(values[i] >= 0 && values[i] <= 1))
            abort();
    if (cifar10_label(record) != record[0])
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct error error = ERROR_INIT;
    int64_t records;
    if (cifar10_count(length, &records, &error) < 0) {
        if (error.message[0] == '\0')
            abort();
        return 0;
    }
    if ((size_t)records * CIFAR10_RECORD != length)
        abort();
    read_record(bytes);
    read_record(bytes + (records - 1) * CIFAR10_RECORD);
    return 0;
}
