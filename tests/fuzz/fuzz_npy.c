/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes are either a NumPy array with all elements inside them, or an error.
 */
#include <stdlib.h>

#include "common/data/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct error error = ERROR_INIT;
    struct npy npy;
    if (npy_parse(bytes, length, &npy, &error) < 0) {
        if (error.message[0] == '\0')
            abort();
        return 0;
    }
    if (npy.data + npy.elements * npy.item_bytes != bytes + length)
        abort();
    if (npy.elements > 0)
        (void)npy_integer_at(&npy, npy.elements - 1);
    return 0;
}
