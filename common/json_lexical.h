/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks the tokens of a JSON text for what cJSON accepts although RFC 8259 forbids it: control characters as white space, numbers such
 * as 01 or 1., bytes that are not UTF-8. Also refuses NUL characters in strings and too many levels of nesting. Only json.c uses it.
 */
#ifndef COXSWAIN_COMMON_JSON_LEXICAL_H
#define COXSWAIN_COMMON_JSON_LEXICAL_H

#include <stddef.h>

#include "common/error.h"

/* ERROR_INVALID with the offset of the first bad token. Does not check the order of tokens, which the parser does. */
int json_lexical_check(const char *text, size_t length, struct error *error);

/* Describes the byte at `offset` for an error message: "'x'", "byte 0x07", "the end". */
#define JSON_BYTE_TEXT_MAX 16
void json_lexical_describe(const char *text, size_t length, size_t offset, char description[JSON_BYTE_TEXT_MAX]);

#endif
