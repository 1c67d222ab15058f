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
