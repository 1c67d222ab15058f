/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/protobuf_body.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(protobuf_body);

/* As kubectl create namespace zz sends it, empty fields and all. */
static const char namespace_body[] =
    "k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x1a\x0a\x12\x0a\x02zz\x12\x00\x1a\x00\""
    "\x00*\x00"
    "2\x00"
    "8\x00"
    "B\x00\x12\x00\x1a\x02\x0a\x00\x1a\x00\"\x00";

Test(protobuf_body, reads_a_namespace)
{
    struct json *object;
    struct error error = ERROR_INIT;
    cr_assert_eq(protobuf_body_parse(namespace_body, sizeof namespace_body - 1, &object, &error), 0, "%s",
                 error.message);
    cr_expect_str_eq(json_string_at(object, "kind", ""), "Namespace");
    cr_expect_str_eq(json_string_at(object, "metadata.name", ""), "zz");
    cr_expect_eq(json_count(json_member(object, "metadata")), 1);
    json_free(object);
}

Test(protobuf_body, every_truncation_is_refused_or_shorter)
{
    for (size_t length = 0; length < sizeof namespace_body - 1; length++) {
        struct json *object = NULL;
        if (protobuf_body_parse(namespace_body, length, &object, NULL) == 0)
            json_free(object);
    }
}

Test(protobuf_body, an_unknown_kind_is_unsupported)
{
    static const char body[] = "k8s\0\x0a\x0b\x0a\x02v1\x12\x05Thing\x12\x00";
    struct json *object;
    struct error error = ERROR_INIT;
    cr_expect_eq(protobuf_body_parse(body, sizeof body - 1, &object, &error), -1);
    cr_expect_eq(error.kind, ERROR_UNSUPPORTED);
}
