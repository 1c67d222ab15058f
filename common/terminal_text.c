/* SPDX-License-Identifier: Apache-2.0 */
#include "common/terminal_text.h"

#include <stdbool.h>

/* How many bytes follow the first of a character; 0 of what begins none (RFC 3629). */
static int count_following(unsigned char byte)
{
    if (byte >= 0xc2 && byte <= 0xdf)
        return 1;
    if (byte >= 0xe0 && byte <= 0xef)
        return 2;
    return byte >= 0xf0 && byte <= 0xf4 ? 3 : 0;
}

/* Within a character, but not of U+0080-U+009F, in two bytes or in more than it takes. */
static bool continues(const struct terminal_text *text, unsigned char byte)
{
    if (text->due == 0 || byte < 0x80 || byte > 0xbf)
        return false;
    switch (text->last) {
    case 0xc2: /* U+0080-U+009F */
    case 0xe0: /* of fewer bytes */
        return byte >= 0xa0;
    case 0xed: /* surrogates */
        return byte <= 0x9f;
    case 0xf0: /* of fewer bytes */
        return byte >= 0x90;
    case 0xf4: /* beyond U+10FFFF */
        return byte <= 0x8f;
    default:
        return true;
    }
}

static bool steers(const struct terminal_text *text, unsigned char byte)
{
    if (byte < 0x20)
        return byte != '\n' && byte != '\t';
    return byte == 0x7f || (byte >= 0x80 && byte <= 0x9f && !continues(text, byte));
}

unsigned char terminal_text_next(struct terminal_text *text, unsigned char byte)
{
    unsigned char shown = steers(text, byte) ? '?' : byte;
    text->due = continues(text, shown) ? text->due - 1 : count_following(shown);
    text->last = shown;
    return shown;
}

void terminal_text_append(struct buffer *out, const char *text, size_t length)
{
    struct terminal_text state = {0};
    for (size_t i = 0; i < length; i++)
        buffer_append_byte(out, (char)terminal_text_next(&state, (unsigned char)text[i]), NULL);
}
