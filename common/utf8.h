/* SPDX-License-Identifier: Apache-2.0
 *
 * UTF-8 as RFC 3629 has it: shortest form, no surrogates, nothing above U+10FFFF.
 */
#ifndef COXSWAIN_COMMON_UTF8_H
#define COXSWAIN_COMMON_UTF8_H

#include <stddef.h>

/* The length of the character at `bytes`, 0 when the next `length` bytes do not begin with a whole one. */
size_t utf8_sequence(const char *bytes, size_t length);

/* The length of the longest beginning of `text` that has at most `most` bytes and cuts no character. */
size_t utf8_fit(const char *text, size_t most);

#endif
