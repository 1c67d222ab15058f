/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws and compares tokens: texts that a client sends to show that it has the right to ask, such as the bearer token of a kubeconfig.
 */
#ifndef COXSWAIN_COMMON_TOKEN_H
#define COXSWAIN_COMMON_TOKEN_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

#define TOKEN_BYTES 32
#define TOKEN_LENGTH (2 * TOKEN_BYTES) /* hexadecimal digits */

/* Draws a random token, and ends it with a zero. */
int token_draw(char ret_token[TOKEN_LENGTH + 1], struct error *error);

/* Returns whether the text is the token. How long it takes depends neither on where the two differ nor on the token's length. */
bool token_matches(const char *token, const char *text, size_t length);

#endif
