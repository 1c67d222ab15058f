/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/index_set.h"

#include <criterion/criterion.h>

static const char *round_trip(struct arena *arena, int64_t size, const char *text)
{
    struct index_set set = index_set_make(arena, size);
    index_set_parse(&set, text);
    return index_set_print(&set, arena);
}

Test(index_set, prints_ranges)
{
    struct arena arena = {0};
    cr_assert_str_eq(round_trip(&arena, 10, "0,1,2,3,7"), "0-3,7");
    cr_assert_str_eq(round_trip(&arena, 200, "0-199"), "0-199");
    cr_assert_str_eq(round_trip(&arena, 200, "5,63-64,198"), "5,63-64,198");
    cr_assert_null(round_trip(&arena, 10, NULL));
    cr_assert_null(round_trip(&arena, 10, ""));
    arena_release(&arena);
}

Test(index_set, ignores_what_it_cannot_hold_or_read)
{
    struct arena arena = {0};
    cr_assert_str_eq(round_trip(&arena, 4, "2-999999999999"), "2-3");
    cr_assert_str_eq(round_trip(&arena, 4, "1,x,2"), "1");
    cr_assert_null(round_trip(&arena, 4, "9"));
    cr_assert_null(round_trip(&arena, 4, "3-1"));
    arena_release(&arena);
}

Test(index_set, what_lies_outside_is_not_added)
{
    struct arena arena = {0};
    struct index_set set = index_set_make(&arena, 70);
    index_set_add(&set, 69);
    index_set_add(&set, 70);
    index_set_add(&set, -1);
    cr_assert(index_set_has(&set, 69));
    cr_assert_not(index_set_has(&set, 70));
    cr_assert_str_eq(index_set_print(&set, &arena), "69");
    arena_release(&arena);
}
