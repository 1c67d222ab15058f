/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes bytes as hexadecimal digits: digests, and random tokens.
 */
#ifndef COXSWAIN_COMMON_HEXADECIMAL_H
#define COXSWAIN_COMMON_HEXADECIMAL_H

#include <stddef.h>

/* Writes two lower-case digits for each byte, and the terminating zero: 2 * count + 1 characters. */
void hexadecimal_write(const void *bytes, size_t count, char *ret_text);

#endif
