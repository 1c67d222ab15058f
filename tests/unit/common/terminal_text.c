/* SPDX-License-Identifier: Apache-2.0 */
#include "common/terminal_text.h"

#include <criterion/criterion.h>
#include <string.h>

static void check(const char *bytes, const char *shown)
{
    struct terminal_text text = {0};
    char printed[64] = {0};
    for (size_t i = 0; bytes[i] != '\0'; i++)
        printed[i] = (char)terminal_text_next(&text, (unsigned char)bytes[i]);
    cr_expect_str_eq(printed, shown);
}

Test(terminal_text, text_passes)
{
    check("To be,\n\tor not", "To be,\n\tor not");
    check("\u00e9\u0153\u2013\u4e00\U0001f600", "\u00e9\u0153\u2013\u4e00\U0001f600");
    check("caf\xe9 \xa9", "caf\xe9 \xa9"); /* Latin-1 */
}

Test(terminal_text, control_characters_do_not_pass)
{
    check("\x1b[2J\r\a\x7f", "?[2J???");
    check("a\x9b"
          "2J\x9d\x90",
          "a?2J??");
}

Test(terminal_text, controls_of_two_bytes_do_not_pass)
{
    check("\xc2\x9b"
          "2J",
          "\xc2?2J");
    check("\xe2\xc2\x9b", "\xe2\xc2?");
    check("\xc2\xa0\x9b", "\xc2\xa0?");
}

Test(terminal_text, overlong_controls_do_not_pass)
{
    check("\xc0\x9b\xc1\x9b", "\xc0?\xc1?");
    check("\xe0\x82\x9b", "\xe0??");
    check("\xf0\x80\x82\x9b", "\xf0???");
}

Test(terminal_text, controls_behind_a_broken_character_do_not_pass)
{
    check("\xe2"
          "a\x9b",
          "\xe2"
          "a?");
    check("\xe2\x80\x93\x9b", "\xe2\x80\x93?");
    check("\xf5\x9b", "\xf5?");
    check("\xed\xa0\x9b", "\xed\xa0?");
    check("\xf4\x90\x9b", "\xf4??");
}

Test(terminal_text, a_text_is_shortened)
{
    char shown[5];
    cr_expect_str_eq(terminal_text_shorten("a\x1b[31m", 6, 4, shown), "a?[3");
    cr_expect_str_eq(terminal_text_shorten("abcdef", 2, 4, shown), "ab");
    cr_expect_str_eq(terminal_text_shorten("", 0, 4, shown), "");
}
