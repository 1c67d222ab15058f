/* SPDX-License-Identifier: Apache-2.0 */
#include "common/utf8.h"

#include <string.h>

size_t utf8_length(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first < 0xc2)
        return 0;
    if (first < 0xe0)
        return 2;
    if (first < 0xf0)
        return 3;
    return first < 0xf5 ? 4 : 0;
}

bool utf8_second_fits(unsigned char first, unsigned char second)
{
    switch (first) {
    case 0xe0:
        return second >= 0xa0; /* else a longer form than needed */
    case 0xed:
        return second <= 0x9f; /* else a surrogate */
    case 0xf0:
        return second >= 0x90; /* else a longer form than needed */
    case 0xf4:
        return second <= 0x8f; /* else above U+10FFFF */
    default:
        return true;
    }
}

size_t utf8_sequence(const char *bytes, size_t length)
{
    if (length == 0)
        return 0;
    size_t size = utf8_length((unsigned char)bytes[0]);
    if (size > length)
        return 0;
    for (size_t i = 1; i < size; i++)
        if (((unsigned char)bytes[i] & 0xc0) != 0x80)
            return 0;
    if (size > 1 && !utf8_second_fits((unsigned char)bytes[0], (unsigned char)bytes[1]))
        return 0;
    return size;
}

size_t utf8_fit(const char *text, size_t most)
{
    size_t length = strnlen(text, most);
    if (text[length] == '\0')
        return length;
    while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
        length--;
    return length;
}
