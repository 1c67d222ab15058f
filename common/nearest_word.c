/* SPDX-License-Identifier: Apache-2.0 */
#include "common/nearest_word.h"

#include <ctype.h>
#include <string.h>

#include "common/extremes.h"

#define WORD_MAX 64

/* Levenshtein's distance, one row at a time. */
static size_t edits(const char *from, const char *to)
{
    size_t row[WORD_MAX + 1], length = strlen(to);
    for (size_t j = 0; j <= length; j++)
        row[j] = j;
    for (size_t i = 1; from[i - 1]; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            size_t other = diagonal + (tolower((unsigned char)from[i - 1]) != tolower((unsigned char)to[j - 1]));
            diagonal = row[j];
            row[j] = size_min(other, size_min(row[j], row[j - 1]) + 1);
        }
    }
    return row[length];
}

const char *nearest_word(const char *word, const char *const *known, size_t count)
{
    const char *best = NULL;
    size_t fewest = WORD_MAX;
    if (strlen(word) > WORD_MAX)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(known[i]), needed = length > WORD_MAX ? WORD_MAX : edits(word, known[i]);
        if (needed < fewest && needed <= (length + 2) / 3) {
            fewest = needed;
            best = known[i];
        }
    }
    return best;
}
