/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/observed/uid_bytes.h"

#include <string.h>

static const char digits[] = "0123456789abcdef";

/* 8-4-4-4-12 digits. */
static bool dash_follows(int byte)
{
    return byte == 3 || byte == 5 || byte == 7 || byte == 9;
}

static int digit_value(char digit)
{
    const char *at = digit != '\0' ? strchr(digits, digit) : NULL;
    return at ? (int)(at - digits) : -1;
}

bool uid_bytes_parse(const char *text, unsigned char ret_bytes[UID_BYTES])
{
    for (int i = 0; i < UID_BYTES; i++) {
        int high = digit_value(text[0]), low = high < 0 ? -1 : digit_value(text[1]);
        if (low < 0)
            return false;
        ret_bytes[i] = (unsigned char)(high << 4 | low);
        text += 2;
        if (dash_follows(i) && *text++ != '-')
            return false;
    }
    return *text == '\0';
}

void uid_bytes_print(const unsigned char bytes[UID_BYTES], char ret_text[UID_TEXT_MAX])
{
    for (int i = 0; i < UID_BYTES; i++) {
        *ret_text++ = digits[bytes[i] >> 4];
        *ret_text++ = digits[bytes[i] & 0xf];
        if (dash_follows(i))
            *ret_text++ = '-';
    }
    *ret_text = '\0';
}
