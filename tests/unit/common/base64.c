/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base64.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/scope.h"

static const char *const pairs[][2] = {
    {"", ""}, {"Zg==", "f"}, {"Zm8=", "fo"}, {"Zm9v", "foo"}, {"Zm9vYmFy", "foobar"}, {"w6k/", "\xc3\xa9?"},
};

Test(base64, both_ways)
{
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        SCOPED_FREE char *encoded = base64_encode(pairs[i][1], strlen(pairs[i][1]));
        SCOPED_FREE char *decoded = NULL;
        size_t length = 0;
        cr_assert_str_eq(encoded, pairs[i][0]);
        cr_assert_eq(base64_decode(encoded, &decoded, &length, NULL), 0);
        cr_assert_eq(length, strlen(pairs[i][1]));
        cr_assert_str_eq(decoded, pairs[i][1]);
    }
}

Test(base64, line_ends_are_passed_over)
{
    SCOPED_FREE char *decoded = NULL;
    size_t length;
    cr_assert_eq(base64_decode("Zm9v\r\nYmFy\n", &decoded, &length, NULL), 0);
    cr_assert_str_eq(decoded, "foobar");
}

Test(base64, bytes_may_be_anything)
{
    const char bytes[] = {0, 1, (char)0xff, 0};
    SCOPED_FREE char *encoded = base64_encode(bytes, sizeof bytes);
    SCOPED_FREE char *decoded = NULL;
    size_t length;
    cr_assert_eq(base64_decode(encoded, &decoded, &length, NULL), 0);
    cr_assert_eq(length, sizeof bytes);
    cr_assert_eq(memcmp(decoded, bytes, sizeof bytes), 0);
}

Test(base64, what_it_is_not_is_refused)
{
    static const char *const wrong[] = {"Z", "Zg", "Zm9v!", "Zg==Zg==", "Zm9vZ", "====", "Zg= =", " Zm9v", "Z==="};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char *decoded;
        size_t length;
        struct error error = ERROR_INIT;
        cr_assert_eq(base64_decode(wrong[i], &decoded, &length, &error), -1, "%s", wrong[i]);
        cr_assert_eq(error.kind, ERROR_INVALID);
    }
}
