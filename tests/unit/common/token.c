/* SPDX-License-Identifier: Apache-2.0 */
#include "common/token.h"

#include <criterion/criterion.h>
#include <string.h>

Test(token, is_drawn_anew_each_time)
{
    char one[TOKEN_LENGTH + 1], other[TOKEN_LENGTH + 1];
    cr_assert_eq(token_draw(one, NULL), 0);
    cr_assert_eq(token_draw(other, NULL), 0);
    cr_assert_eq(strspn(one, "0123456789abcdef"), TOKEN_LENGTH);
    cr_assert_eq(strlen(one), TOKEN_LENGTH);
    cr_assert_str_neq(one, other);
}

Test(token, is_matched_by_nothing_else)
{
    cr_assert(token_matches("abcd", "abcd", 4));
    cr_assert(token_matches("abcd", "abcd; other", 4));
    static const char *const others[] = {"", "abc", "abcde", "abce", "ABCD"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        cr_assert_not(token_matches("abcd", others[i], strlen(others[i])), "%s", others[i]);
}
