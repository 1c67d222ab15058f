/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes are either an IDX file with all elements inside them, or an error.
 */
#include <stdlib.h>

#include "common/data/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct error error = ERROR_INIT;
    struct idx idx;
    if (idx_parse(bytes, length, &idx, &error) < 0) {
        if (error.message[0] == '\0')
            abort();
        return 0;
    }
    if (idx.elements < bytes || idx.elements + idx.element_count != bytes + length)
        abort();
    return 0;
}
