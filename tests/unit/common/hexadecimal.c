/* SPDX-License-Identifier: Apache-2.0 */
#include "common/hexadecimal.h"

#include <criterion/criterion.h>

Test(hexadecimal, has_two_digits_for_each_byte)
{
    static const unsigned char bytes[] = {0x00, 0x0f, 0xa5, 0xff};
    char text[9];
    hexadecimal_write(bytes, sizeof bytes, text);
    cr_assert_str_eq(text, "000fa5ff");
    hexadecimal_write(bytes, 0, text);
    cr_assert_str_eq(text, "");
}

Test(hexadecimal, digits_of_either_case_have_values)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    for (int i = 0; digits[i]; i++)
        cr_assert_eq(hexadecimal_digit(digits[i]), i < 16 ? i : i - 6);
    for (const char *c = "/:@G`g"; *c; c++)
        cr_assert_lt(hexadecimal_digit(*c), 0, "%c", *c);
    cr_assert_lt(hexadecimal_digit(-1), 0);
}
