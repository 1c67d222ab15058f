/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates and compares random tokens, by which a client authenticates itself, such as the bearer token of a kubeconfig.
 */
#ifndef COXSWAIN_COMMON_TOKEN_H
#define COXSWAIN_COMMON_TOKEN_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

#define TOKEN_BYTES 32
#define TOKEN_LENGTH (2 * TOKEN_BYTES) /* hexadecimal digits */

/* Writes a random token, NUL-terminated. */
int token_draw(char ret_token[TOKEN_LENGTH + 1], struct error *error);

/* Returns whether the text is the token. The time it takes depends neither on where the two differ nor on the token's length. */
bool token_matches(const char *token, const char *text, size_t length);

#endif
