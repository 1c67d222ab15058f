/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes bytes as hexadecimal digits (digests, random tokens), and reads such digits.
 */
#ifndef COXSWAIN_COMMON_HEXADECIMAL_H
#define COXSWAIN_COMMON_HEXADECIMAL_H

#include <stddef.h>

/* Writes two lower-case digits for each byte, and the terminating zero: 2 * count + 1 characters. */
void hexadecimal_write(const void *bytes, size_t count, char *ret_text);

/* Returns the value of a digit of either case, -1 if `digit` is none. */
int hexadecimal_digit(int digit);

#endif
