/* SPDX-License-Identifier: Apache-2.0
 *
 * A struct in few bytes: most words of one that has a member for every setting there is are 0, FIELD_UNSET, or small
 * numbers. Four bits a word tell how many of its bytes follow. What comes out is, bit for bit, what went in.
 */
#ifndef COXSWAIN_CONTROLLER_PACKED_WORDS_H
#define COXSWAIN_CONTROLLER_PACKED_WORDS_H

#include <stddef.h>
#include <stdint.h>

/* The most that `count` words take. */
#define PACKED_WORDS_MAX(count) (((count) + 1) / 2 + (count) * sizeof(uint64_t))

/* Returns how many bytes were written. */
size_t packed_words_put(const void *words, size_t count, unsigned char *to);
void packed_words_take(const unsigned char *from, size_t count, void *ret_words);

#endif
