/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/arena.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

Test(arena, gives_zeroed_aligned_memory_that_stays_apart)
{
    struct arena arena = {0};
    unsigned char *blocks[200];
    for (size_t i = 0; i < 200; i++) {
        blocks[i] = arena_allocate(&arena, i + 1, 7);
        cr_expect((uintptr_t)blocks[i] % _Alignof(max_align_t) == 0);
        for (size_t k = 0; k < (i + 1) * 7; k++)
            cr_expect(blocks[i][k] == 0);
        memset(blocks[i], (int)i + 1, (i + 1) * 7);
    }
    for (size_t i = 0; i < 200; i++)
        cr_expect(blocks[i][0] == i + 1 && blocks[i][(i + 1) * 7 - 1] == i + 1);
    cr_expect(arena_bytes(&arena) > 200 * 100 * 7);
    arena_release(&arena);
    cr_expect(arena_bytes(&arena) == 0);
}

Test(arena, copies_strings_and_may_be_moved)
{
    struct arena arena = {0};
    const char *text = arena_copy_string(&arena, "digits");
    cr_expect(arena_copy_string(&arena, NULL) == NULL);
    struct arena moved = arena;
    cr_expect_str_eq(text, "digits");
    arena_release(&moved);
}

Test(arena, strings_and_values_that_need_alignment_stay_apart)
{
    struct arena arena = {0};
    uint64_t *numbers[300];
    const char *texts[300];
    for (uint64_t i = 0; i < 300; i++) {
        char text[64] = {0};
        memset(text, 'a' + (int)(i % 26), i % 61);
        numbers[i] = arena_allocate(&arena, 1 + i % 3, sizeof **numbers);
        *numbers[i] = i;
        texts[i] = arena_copy_string(&arena, text);
    }
    for (uint64_t i = 0; i < 300; i++) {
        cr_expect_eq((uintptr_t)numbers[i] % _Alignof(max_align_t), 0);
        cr_expect_eq(*numbers[i], i);
        cr_expect_eq(strlen(texts[i]), i % 61);
        cr_expect(i % 61 == 0 || (texts[i][0] == 'a' + (char)(i % 26) && texts[i][i % 61 - 1] == texts[i][0]));
    }
    arena_release(&arena);
}

Test(arena, a_jobs_few_strings_take_little_more_than_their_bytes)
{
    struct arena arena = {0};
    for (int i = 0; i < 60; i++)
        arena_copy_string(&arena, "twelve bytes");
    cr_expect_lt(arena_bytes(&arena), 60 * 13 * 5 / 4 + 256);
    arena_release(&arena);
}
