/* SPDX-License-Identifier: Apache-2.0 */
#include "common/nearest_word.h"

#include <criterion/criterion.h>
#include <string.h>

static const char *const known[] = {"data", "runs", "scripts"};

Test(nearest_word, a_typing_error_is_seen_through)
{
    cr_expect_str_eq(nearest_word("datta", known, 3), "data");
    cr_expect_str_eq(nearest_word("Scirpts", known, 3), "scripts");
    cr_expect_str_eq(nearest_word("run", known, 3), "runs");
}

Test(nearest_word, two_swapped_letters_are_one_error)
{
    static const char *const presets[] = {"lenet", "mlp"};
    cr_expect_str_eq(nearest_word("mpl", presets, 2), "mlp");
    cr_expect_null(nearest_word("lpm", presets, 2));
    cr_expect_str_eq(nearest_word("elent", presets, 2), "lenet");
}

Test(nearest_word, another_word_is_none)
{
    char huge[200];
    memset(huge, 'a', sizeof huge);
    huge[sizeof huge - 1] = '\0';
    cr_expect_null(nearest_word("models", known, 3));
    cr_expect_null(nearest_word("", known, 3));
    cr_expect_null(nearest_word(huge, known, 3));
    cr_expect_null(nearest_word("data", (const char *const[]){huge}, 1));
}
