/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "common/json.h"

static struct json *parsed(const char *text)
{
    struct json *value = NULL;
    cr_assert(json_parse(text, strlen(text), 4096, &value, NULL) == 0, "%s", text);
    return value;
}

Test(json_patch, equality_ignores_the_order_of_members_only)
{
    static const struct {
        const char *left, *right;
        bool equal;
    } cases[] = {
        {"{\"a\":1,\"b\":[1,2]}", "{\"b\":[1,2],\"a\":1}", true},
        {"[1,2]", "[2,1]", false},
        {"[1]", "[1,2]", false},
        {"{\"a\":1}", "{\"a\":1,\"b\":null}", false},
        {"{\"a\":1,\"b\":null}", "{\"a\":1}", false},
        {"{\"a\":1,\"b\":2}", "{\"a\":1,\"c\":2}", false},
        {"\"1\"", "1", false},
        {"true", "false", false},
        {"null", "null", true},
        {"1.0", "1", true},
        {"\"a\"", "\"a\"", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        SCOPED_JSON *left = parsed(cases[i].left);
        SCOPED_JSON *right = parsed(cases[i].right);
        cr_expect(json_equal(left, right) == cases[i].equal, "%s %s", cases[i].left, cases[i].right);
    }
    cr_expect(json_equal(NULL, NULL));
}

/* The test cases of RFC 7386, appendix A. */
Test(json_patch, merges_as_the_rfc_says)
{
    static const struct {
        const char *target, *patch, *result;
    } cases[] = {
        {"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
        {"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}"},
        {"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}"},
        {"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}"},
        {"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
        {"[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]"},
        {"{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]"},
        {"{\"a\":\"foo\"}", "null", "null"},
        {"{\"a\":\"foo\"}", "\"bar\"", "\"bar\""},
        {"{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}"},
        {"[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}"},
        {"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},
        /* as API servers do */
        {"{}", "{\"a\":[null,{\"b\":null,\"c\":[{\"d\":null,\"e\":1}]}]}", "{\"a\":[null,{\"c\":[{\"e\":1}]}]}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct json *target = parsed(cases[i].target);
        SCOPED_JSON *patch = parsed(cases[i].patch);
        SCOPED_JSON *result = parsed(cases[i].result);
        json_merge_patch(&target, patch);
        cr_expect(json_equal(target, result), "%s + %s", cases[i].target, cases[i].patch);
        json_free(target);
    }
}
