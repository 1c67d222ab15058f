/* SPDX-License-Identifier: Apache-2.0
 *
 * Compresses a struct without loss, given as an array of 64-bit words; job_record.h stores jobs
 * with it. In a struct with a member for every setting, most words are 0, FIELD_UNSET or small
 * numbers. For each word, four bits say how many of its bytes follow. The struct's size must be a
 * multiple of eight bytes, and what its pointers point to is not copied.
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
