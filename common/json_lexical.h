/* SPDX-License-Identifier: Apache-2.0
 *
 * The strict half of the JSON parser: what cJSON lets pass and RFC 8259 does not
 * (control characters as white space, NUL in strings, numbers such as 01 or 1.,
 * bytes that are not UTF-8), and the nesting limit. Only json.c calls it.
 */
#ifndef COXSWAIN_COMMON_JSON_LEXICAL_H
#define COXSWAIN_COMMON_JSON_LEXICAL_H

#include <stddef.h>

#include "common/error.h"

/* Checks every token and the depth; ERROR_INVALID with the offset. The order of tokens is left to the parser. */
int json_lexical_check(const char *text, size_t length, struct error *error);

/* Describes the byte at `offset` for a message: "'x'", "byte 0x07", "the end". */
#define JSON_BYTE_TEXT_MAX 16
void json_lexical_describe(const char *text, size_t length, size_t offset, char description[JSON_BYTE_TEXT_MAX]);

#endif
