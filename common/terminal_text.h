/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes untrusted bytes safe to print on a terminal, for text that a model generates and names from data files. Control
 * characters, which could steer the terminal (ISO 6429: U+0000-U+001F except line feed and tab, and
 * U+007F-U+009F, also as single bytes outside UTF-8), become question marks. All other text passes,
 * in UTF-8 or Latin-1.
 */
#ifndef COXSWAIN_COMMON_TERMINAL_TEXT_H
#define COXSWAIN_COMMON_TERMINAL_TEXT_H

#include "common/buffer.h"

/* The state between two bytes. Zero-initialised. */
struct terminal_text {
    unsigned char last;
    size_t due; /* bytes still missing of a UTF-8 character */
};

/* Returns what to print for the next byte: the byte itself, or a question mark. */
unsigned char terminal_text_next(struct terminal_text *text, unsigned char byte);

/* Appends a whole text, made safe. */
void terminal_text_append(struct buffer *out, const char *text, size_t length);

/* Writes the first `most` bytes of a text, made safe, and a NUL to `shown`, which has room for most + 1 bytes. Returns
 * `shown`. */
const char *terminal_text_shorten(const char *text, size_t length, size_t most, char *shown);

#endif
