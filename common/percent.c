/* SPDX-License-Identifier: Apache-2.0 */
#include "common/percent.h"

#include <string.h>

static bool is_unreserved(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           byte == '-' || byte == '.' || byte == '_' || byte == '~';
}

int percent_encode(struct buffer *buffer, const char *text, const char *kept, struct error *error)
{
    static const char digits[] = "0123456789ABCDEF";
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        char encoded[] = {'%', digits[byte >> 4], digits[byte & 15]};
        bool plain = is_unreserved(*text) || strchr(kept, *text);
        if (buffer_append(buffer, plain ? text : encoded, plain ? 1 : sizeof encoded, error) < 0)
            return -1;
    }
    return 0;
}
