/* SPDX-License-Identifier: Apache-2.0
 *
 * Suggests the known word that a mistyped word was probably meant to be, for messages about unknown fields, enum words and names.
 */
#ifndef COXSWAIN_COMMON_NEAREST_WORD_H
#define COXSWAIN_COMMON_NEAREST_WORD_H

#include <stddef.h>

/* Returns the element of `known` that the fewest typing errors make of `word`, ignoring case: a letter added, left out or
 * changed, or two neighbouring letters swapped. Skips those that differ in more than a third of their letters (rounded up) or are longer
 * than 64. Returns NULL if none is left, or if `word` is longer than 64. */
const char *nearest_word(const char *word, const char *const *known, size_t count);

#endif
