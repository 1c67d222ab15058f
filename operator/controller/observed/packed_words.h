/* SPDX-License-Identifier: Apache-2.0
 *
 * Compresses a struct, losslessly. In a struct with a member for every setting, most 64-bit words
 * are 0, FIELD_UNSET or small numbers. Four bits for each word say how many of its bytes are
 * stored.
 */
#ifndef COXSWAIN_CONTROLLER_PACKED_WORDS_H
#define COXSWAIN_CONTROLLER_PACKED_WORDS_H

#include <stddef.h>
#include <stdint.h>

/* Largest compressed size of `count` words, in bytes. */
#define PACKED_WORDS_MAX(count) (((count) + 1) / 2 + (count) * sizeof(uint64_t))

/* Compresses `count` words into `to`, and returns how many bytes were written. */
size_t packed_words_put(const void *words, size_t count, unsigned char *to);
void packed_words_take(const unsigned char *from, size_t count, void *ret_words);

#endif
