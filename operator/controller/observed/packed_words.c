/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/observed/packed_words.h"

#include <string.h>

#include "common/job/job_document.h"

/* In place of a number of bytes: none follows. */
#define UNSET_WIDTH 9

static unsigned width_of(uint64_t word)
{
    unsigned width = 0;
    if (word == (uint64_t)FIELD_UNSET)
        return UNSET_WIDTH;
    for (; word > 0; word >>= 8)
        width++;
    return width;
}

size_t packed_words_put(const void *words, size_t count, unsigned char *to)
{
    unsigned char *widths = to, *end = to + (count + 1) / 2;
    memset(widths, 0, (count + 1) / 2);
    for (size_t i = 0; i < count; i++) {
        uint64_t word;
        memcpy(&word, (const char *)words + i * sizeof word, sizeof word);
        unsigned width = width_of(word);
        widths[i / 2] |= (unsigned char)(width << i % 2 * 4);
        for (unsigned byte = 0; width != UNSET_WIDTH && byte < width; byte++)
            *end++ = (unsigned char)(word >> 8 * byte);
    }
    return (size_t)(end - to);
}

void packed_words_take(const unsigned char *from, size_t count, void *ret_words)
{
    const unsigned char *widths = from, *next = from + (count + 1) / 2;
    for (size_t i = 0; i < count; i++) {
        unsigned width = widths[i / 2] >> i % 2 * 4 & 0xf;
        uint64_t word = width == UNSET_WIDTH ? (uint64_t)FIELD_UNSET : 0;
        for (unsigned byte = 0; width != UNSET_WIDTH && byte < width; byte++)
            word |= (uint64_t)*next++ << 8 * byte;
        memcpy((char *)ret_words + i * sizeof word, &word, sizeof word);
    }
}
