/* SPDX-License-Identifier: Apache-2.0
 *
 * Hostile weight files: in an accepted file, all tensors are inside the bytes.
 */
#include <stdint.h>
#include <stdlib.h>

#include "worker/checkpoint/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct safetensors_file file;
    struct error error = ERROR_INIT;
    if (safetensors_parse(data, size, &file, &error) < 0)
        return 0;
    for (unsigned i = 0; i < file.count; i++) {
        const uint8_t *begin = file.tensors[i].data;
        if (begin < data || begin + file.tensors[i].bytes > data + size)
            abort();
    }
    safetensors_close(&file);
    return 0;
}
