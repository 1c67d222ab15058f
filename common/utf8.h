/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds where the characters of a UTF-8 text end, so that a text can be shortened or escaped
 * without cutting a character in two. Valid characters are those of RFC 3629: shortest form, no
 * surrogates, nothing above U+10FFFF.
 */
#ifndef COXSWAIN_COMMON_UTF8_H
#define COXSWAIN_COMMON_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the length in bytes of the character at `bytes`; 0 if the `length` bytes do not begin with a complete, valid character. */
size_t utf8_sequence(const char *bytes, size_t length);

/* For text that comes byte by byte. Returns the length in bytes of the character that begins with `first`; 0 if no character does. */
size_t utf8_length(unsigned char first);
/* Returns whether a character that begins with `first` may go on with `second`, which is one of 0x80-0xbf. */
bool utf8_second_fits(unsigned char first, unsigned char second);

/* Returns the length of the longest prefix of `text` that has at most `most` bytes and ends between characters. */
size_t utf8_fit(const char *text, size_t most);

#endif
