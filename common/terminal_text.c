/* SPDX-License-Identifier: Apache-2.0 */
#include "common/terminal_text.h"

#include <stdbool.h>

#include "common/utf8.h"

/* Whether `byte` is a further byte of a character, other than U+0080-U+009F. */
static bool continues(const struct terminal_text *text, unsigned char byte)
{
    if (text->due == 0 || byte < 0x80 || byte > 0xbf)
        return false;
    bool is_control = text->last == 0xc2 && byte <= 0x9f;
    return !is_control && utf8_second_fits(text->last, byte); /* true where `last` is no first byte */
}

/* Whether a terminal may take the byte for a control character. */
static bool steers(const struct terminal_text *text, unsigned char byte)
{
    if (byte < 0x20)
        return byte != '\n' && byte != '\t';
    return byte == 0x7f || (byte >= 0x80 && byte <= 0x9f && !continues(text, byte));
}

unsigned char terminal_text_next(struct terminal_text *text, unsigned char byte)
{
    unsigned char shown = steers(text, byte) ? '?' : byte;
    if (continues(text, shown))
        text->due--;
    else
        text->due = utf8_length(shown) > 1 ? utf8_length(shown) - 1 : 0;
    text->last = shown;
    return shown;
}

void terminal_text_append(struct buffer *out, const char *text, size_t length)
{
    struct terminal_text state = {0};
    for (size_t i = 0; i < length; i++)
        buffer_append_byte(out, (char)terminal_text_next(&state, (unsigned char)text[i]), NULL);
}

const char *terminal_text_shorten(const char *text, size_t length, size_t most, char *shown)
{
    struct terminal_text state = {0};
    size_t kept = length < most ? length : most;
    for (size_t i = 0; i < kept; i++)
        shown[i] = (char)terminal_text_next(&state, (unsigned char)text[i]);
    shown[kept] = '\0';
    return shown;
}
