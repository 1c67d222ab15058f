/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/observed/packed_words.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "common/job/job_document.h"

#define WORDS 65 /* an odd number: the last widths share their byte with nobody */

static size_t round_trip(const uint64_t words[WORDS])
{
    unsigned char packed[PACKED_WORDS_MAX(WORDS)];
    uint64_t again[WORDS];
    size_t size = packed_words_put(words, WORDS, packed);
    memset(again, 0x5a, sizeof again);
    packed_words_take(packed, WORDS, again);
    cr_assert_eq(memcmp(words, again, sizeof again), 0);
    return size;
}

Test(packed_words, every_width_comes_back_at_every_place)
{
    for (unsigned bits = 0; bits <= 64; bits++) {
        uint64_t words[WORDS];
        for (size_t i = 0; i < WORDS; i++) {
            unsigned width = (bits + (unsigned)i) % 65;
            words[i] = width == 0 ? 0 : UINT64_MAX >> (64 - width);
        }
        round_trip(words);
    }
}

Test(packed_words, what_is_not_set_takes_half_a_byte)
{
    uint64_t words[WORDS] = {0};
    cr_assert_eq(round_trip(words), (WORDS + 1) / 2);
    for (size_t i = 0; i < WORDS; i++)
        words[i] = (uint64_t)FIELD_UNSET;
    cr_assert_eq(round_trip(words), (WORDS + 1) / 2);
    words[WORDS - 1] = 255;
    cr_assert_eq(round_trip(words), (WORDS + 1) / 2 + 1);
}

Test(packed_words, no_word_takes_more_than_there_is_room_for)
{
    uint64_t words[WORDS];
    double unset = DECIMAL_UNSET;
    for (size_t i = 0; i < WORDS; i++)
        words[i] = UINT64_MAX - i;
    memcpy(&words[7], &unset, sizeof unset);
    words[8] = (uint64_t)INT64_MAX;
    words[9] = (uint64_t)FIELD_UNSET + 1;
    cr_assert_eq(round_trip(words), PACKED_WORDS_MAX(WORDS));
}
