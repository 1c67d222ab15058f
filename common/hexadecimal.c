/* SPDX-License-Identifier: Apache-2.0 */
#include "common/hexadecimal.h"

void hexadecimal_write(const void *bytes, size_t count, char *ret_text)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *at = bytes;
    for (size_t i = 0; i < count; i++) {
        *ret_text++ = digits[at[i] >> 4];
        *ret_text++ = digits[at[i] & 15];
    }
    *ret_text = '\0';
}
