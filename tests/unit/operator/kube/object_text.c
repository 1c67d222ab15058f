/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/object_text.h"

#include <criterion/criterion.h>
#include <string.h>

static void check(const char *before, const char *after)
{
    SCOPED_BUFFER text = BUFFER_INIT(4096);
    buffer_append_string(&text, before, NULL);
    object_text_prepare(&text);
    cr_assert_str_eq(buffer_text(&text), after);
    cr_assert_eq(text.length, strlen(after));
}

Test(object_text, managed_fields_are_cut)
{
    check("{\"metadata\":{\"name\":\"a\",\"managedFields\":[{\"f\":{\"]\":[\"\\\"]\",{}]}},{}]},\"spec\":{}}",
          "{\"metadata\":{\"name\":\"a\"},\"spec\":{}}");
    check("{\"metadata\":{\"name\":\"a\",\"managedFields\":[],\"uid\":\"u\"}}",
          "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\"}}");
}

Test(object_text, similar_members_stay)
{
    static const char *const texts[] = {
        "",
        "{}",
        "{\"a\":\",\\\"managedFields\\\":[]\"}",
        "{\"a\":1,\"managedFields\":{}}",
        "{\"a\":1,\"managedFields\":[{\"never\":\"ends",
        "{\"managedFields\":[],\"a\":1}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check(texts[i], texts[i]);
}

Test(object_text, managed_fields_outside_metadata_stay)
{
    check("{\"metadata\":{\"a\":1,\"managedFields\":[1]},\"spec\":{\"b\":2,\"managedFields\":[2]}}",
          "{\"metadata\":{\"a\":1},\"spec\":{\"b\":2,\"managedFields\":[2]}}");
}

Test(object_text, nul_characters_are_replaced_and_escaped_backslashes_stay)
{
    static const char *const cases[][2] = {
        {"\"\\u0000\"", "\"\\ufffd\""},
        {"\"\\u0000\\u0000 \\u0001\"", "\"\\ufffd\\ufffd \\u0001\""},
        {"\"\\\\u0000\"", "\"\\\\u0000\""},
        {"\"\\\\\\u0000\"", "\"\\\\\\ufffd\""},
        {"\\u0000", "\\ufffd"},
        {"\"u0000 \\u000\"", "\"u0000 \\u000\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(cases[i][0], cases[i][1]);
}
