/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds what a person may have meant by a mistyped word.
 */
#ifndef COXSWAIN_COMMON_NEAREST_WORD_H
#define COXSWAIN_COMMON_NEAREST_WORD_H

#include <stddef.h>

/* The one of `known` with the fewest edits from `word` (a letter more, less or other; capitals count as small ones), NULL when
 * even that takes more than a third of its letters, or words have more than 64. */
const char *nearest_word(const char *word, const char *const *known, size_t count);

#endif
