/* SPDX-License-Identifier: Apache-2.0
 *
 * An accepted quantity is not negative, and is the same after it is printed and parsed again.
 */
#include <stdint.h>
#include <stdlib.h>

#include "common/memory.h"
#include "operator/controller/objects/quantity.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    SCOPED_FREE char *text = memory_copy_bytes((const char *)bytes, length);
    char printed[QUANTITY_TEXT_MAX];
    int64_t amount, again;
    if (!quantity_parse(text, &amount))
        return 0;
    quantity_print(amount, printed);
    if (amount < 0 || !quantity_parse(printed, &again) || again != amount)
        abort();
    return 0;
}
