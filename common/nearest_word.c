/* SPDX-License-Identifier: Apache-2.0 */
#include "common/nearest_word.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "common/extremes.h"

#define WORD_MAX 64

static bool is_same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Returns how many letters have to be added, left out, changed or swapped with the next one. */
static size_t edits(const char *from, const char *to)
{
    size_t rows[3][WORD_MAX + 1], length = strlen(to), i = 0;
    for (size_t j = 0; j <= length; j++)
        rows[0][j] = j;
    for (i = 1; from[i - 1]; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *second_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            size_t other = above[j - 1] + !is_same(from[i - 1], to[j - 1]);
            row[j] = size_min(other, size_min(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && is_same(from[i - 1], to[j - 2]) && is_same(from[i - 2], to[j - 1]))
                row[j] = size_min(row[j], second_above[j - 2] + 1);
        }
    }
    return rows[(i - 1) % 3][length];
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
