/* SPDX-License-Identifier: Apache-2.0 */
#include "common/utf8.h"

#include <criterion/criterion.h>
#include <string.h>

Test(utf8, tells_whole_characters)
{
    static const struct {
        const char *bytes;
        size_t size;
    } cases[] = {
        {"a", 1},
        {"\xc2\x80", 2},
        {"\xdf\xbf", 2},
        {"\xe0\xa0\x80", 3},
        {"\xed\x9f\xbf", 3},
        {"\xef\xbf\xbf", 3},
        {"\xf0\x90\x80\x80", 4},
        {"\xf4\x8f\xbf\xbf", 4},
        {"", 0},
        {"\x80", 0},
        {"\xc0\x80", 0},
        {"\xc1\xbf", 0},
        {"\xe0\x9f\xbf", 0},
        {"\xed\xa0\x80", 0},
        {"\xf0\x8f\xbf\xbf", 0},
        {"\xf4\x90\x80\x80", 0},
        {"\xf5\x80\x80\x80", 0},
        {"\xff", 0},
        {"\xc2", 0},
        {"\xe2\x82", 0},
        {"\xe2\x28\xa1", 0},
        {"\xf0\x9f\x98", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect(utf8_sequence(cases[i].bytes, strlen(cases[i].bytes)) == cases[i].size, "case %zu", i);
}

Test(utf8, cuts_between_characters)
{
    static const struct {
        const char *text;
        size_t most, length;
    } cases[] = {
        {"", 0, 0},
        {"", 4, 0},
        {"abc", 3, 3},
        {"abc", 2, 2},
        {"a\xe2\x80\xa6", 4, 4},
        {"a\xe2\x80\xa6", 3, 1},
        {"a\xe2\x80\xa6", 2, 1},
        {"\xe2\x80\xa6\xe2\x80\xa6", 5, 3},
        {"\xf0\x9f\x98\x80", 3, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect_eq(utf8_fit(cases[i].text, cases[i].most), cases[i].length, "case %zu", i);
}
