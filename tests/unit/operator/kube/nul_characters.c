/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/nul_characters.h"

#include <criterion/criterion.h>

Test(nul_characters, become_another_and_what_only_looks_like_them_stays)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"\"\\u0000\"", "\"\\ufffd\""},
        {"\"\\u0000\\u0000 \\u0001\"", "\"\\ufffd\\ufffd \\u0001\""},
        {"\"\\\\u0000\"", "\"\\\\u0000\""},
        {"\"\\\\\\u0000\"", "\"\\\\\\ufffd\""},
        {"\\u0000", "\\ufffd"},
        {"\"u0000 \\u000\"", "\"u0000 \\u000\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        SCOPED_BUFFER text;
        buffer_init(&text, 64);
        buffer_append_string(&text, cases[i][0], NULL);
        nul_characters_replace(&text);
        cr_expect_str_eq(buffer_text(&text), cases[i][1]);
    }
}
