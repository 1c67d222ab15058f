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

int hexadecimal_digit(int digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}
