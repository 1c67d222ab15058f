/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/managed_fields.h"

#include <criterion/criterion.h>
#include <string.h>

static void check(const char *before, const char *after)
{
    SCOPED_BUFFER text;
    buffer_init(&text, 4096);
    buffer_append_string(&text, before, NULL);
    managed_fields_cut(&text);
    cr_assert_str_eq(buffer_text(&text), after);
    cr_assert_eq(text.length, strlen(after));
}

Test(managed_fields, are_cut_out_of_an_object)
{
    check("{\"metadata\":{\"name\":\"a\",\"managedFields\":[{\"f\":{\"]\":[\"\\\"]\",{}]}},{}]},\"spec\":{}}",
          "{\"metadata\":{\"name\":\"a\"},\"spec\":{}}");
    check("{\"metadata\":{\"name\":\"a\",\"managedFields\":[],\"uid\":\"u\"}}",
          "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\"}}");
}

Test(managed_fields, what_only_looks_like_them_stays)
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

Test(managed_fields, only_those_of_the_metadata_go)
{
    check("{\"metadata\":{\"a\":1,\"managedFields\":[1]},\"spec\":{\"b\":2,\"managedFields\":[2]}}",
          "{\"metadata\":{\"a\":1},\"spec\":{\"b\":2,\"managedFields\":[2]}}");
}
