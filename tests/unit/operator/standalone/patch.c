/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/patch.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/memory.h"
#include "tests/unit/json_of.h"

TestSuite(patch);

static void expect_json(const char *target_text, const char *patch_text, const char *expected_text)
{
    SCOPED_JSON *target = json_of(target_text), *patch = json_of(patch_text);
    struct error error = ERROR_INIT;
    int result = patch_apply_json(&target, patch, &error);
    if (expected_text == NULL) {
        cr_expect_eq(result, -1, "%s", patch_text);
        return;
    }
    SCOPED_JSON *expected = json_of(expected_text);
    cr_expect_eq(result, 0, "%s: %s", patch_text, error.message);
    cr_expect(json_equal(target, expected), "%s", patch_text);
}

Test(patch, json_patch_as_in_rfc_6902)
{
    expect_json("{\"a\":[1,3]}", "[{\"op\":\"add\",\"path\":\"/a/1\",\"value\":2}]", "{\"a\":[1,2,3]}");
    expect_json("{\"a\":[1]}", "[{\"op\":\"add\",\"path\":\"/a/-\",\"value\":2}]", "{\"a\":[1,2]}");
    expect_json("{\"a\":1,\"b\":2}", "[{\"op\":\"remove\",\"path\":\"/b\"}]", "{\"a\":1}");
    expect_json("{\"a\":1}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/b\"}]", "{\"b\":1}");
    expect_json("{\"a/b\":1}", "[{\"op\":\"replace\",\"path\":\"/a~1b\",\"value\":2}]", "{\"a/b\":2}");
    expect_json("{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":2}]", NULL);
    expect_json("{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/x/y\"}]", NULL);
    expect_json("{\"a\":[]}", "[{\"op\":\"add\",\"path\":\"/a/01\",\"value\":2}]", NULL);
    expect_json("{\"a\":{}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a/b\"}]", NULL);
}

Test(patch, an_operation_that_is_not_complete_is_told_what_it_lacks)
{
    static const struct {
        const char *operation, *message;
    } refusals[] = {
        {"{\"path\":\"/a\",\"value\":1}", "a JSON patch operation needs an op"},
        {"{\"op\":1,\"path\":\"/a\",\"value\":1}", "a JSON patch operation needs an op"},
        {"7", "a JSON patch operation needs an op"},
        {"{\"op\":\"add\",\"value\":1}", "a JSON patch operation needs a path"},
        {"{\"op\":\"add\",\"path\":\"/a\"}", "the JSON patch operation \"add\" needs a value"},
        {"{\"op\":\"test\",\"path\":\"/a\"}", "the JSON patch operation \"test\" needs a value"},
        {"{\"op\":\"copy\",\"path\":\"/a\",\"value\":1}", "the JSON patch operation \"copy\" needs a path in \"from\""},
        {"{\"op\":\"merge\",\"path\":\"/a\",\"value\":1,\"from\":\"/a\"}",
         "\"merge\" is not a JSON patch operation: use add, remove, replace, move, copy or test"},
    };
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        SCOPED_FREE char *list = memory_format("[%s]", refusals[i].operation);
        SCOPED_JSON *target = json_of("{\"a\":1}"), *patch = json_of(list);
        struct error error = ERROR_INIT;
        cr_expect_eq(patch_apply_json(&target, patch, &error), -1, "%s", list);
        cr_expect_str_eq(error.message, refusals[i].message, "%s: %s", list, error.message);
    }
    expect_json("{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":null}]", "{\"a\":null}");
}

static void expect_strategic(const char *target_text, const char *patch_text, const char *expected_text)
{
    SCOPED_JSON *target = json_of(target_text), *patch = json_of(patch_text), *expected = json_of(expected_text);
    struct error error = ERROR_INIT;
    cr_expect_eq(patch_apply_strategic(target, patch, &error), 0, "%s", error.message);
    cr_expect(json_equal(target, expected), "%s", patch_text);
}

Test(patch, strategic_merge_joins_lists_by_key)
{
    expect_strategic("{\"containers\":[{\"name\":\"a\",\"image\":\"x\"},{\"name\":\"b\"}]}",
                     "{\"containers\":[{\"name\":\"a\",\"image\":\"y\"},{\"name\":\"c\"}]}",
                     "{\"containers\":[{\"name\":\"a\",\"image\":\"y\"},{\"name\":\"b\"},{\"name\":\"c\"}]}");
    expect_strategic("{\"env\":[{\"name\":\"a\"},{\"name\":\"b\"}]}",
                     "{\"env\":[{\"$patch\":\"delete\",\"name\":\"a\"}]}", "{\"env\":[{\"name\":\"b\"}]}");
    expect_strategic("{\"env\":[{\"name\":\"a\"}]}", "{\"env\":[{\"$patch\":\"replace\"},{\"name\":\"z\"}]}",
                     "{\"env\":[{\"name\":\"z\"}]}");
    expect_strategic("{\"args\":[\"a\"]}", "{\"args\":[\"b\"]}", "{\"args\":[\"b\"]}");
    expect_strategic("{\"finalizers\":[\"a\",\"b\"]}",
                     "{\"finalizers\":[\"c\"],\"$deleteFromPrimitiveList/finalizers\":[\"a\"]}",
                     "{\"finalizers\":[\"b\",\"c\"]}");
    expect_strategic("{\"env\":[{\"name\":\"a\"},{\"name\":\"b\"}]}",
                     "{\"$setElementOrder/env\":[{\"name\":\"b\"},{\"name\":\"a\"}]}",
                     "{\"env\":[{\"name\":\"b\"},{\"name\":\"a\"}]}");
    expect_strategic("{\"s\":{\"a\":1,\"b\":2}}", "{\"s\":{\"$retainKeys\":[\"b\"],\"b\":3}}", "{\"s\":{\"b\":3}}");
    expect_strategic("{\"a\":1,\"b\":2}", "{\"a\":null}", "{\"b\":2}");
}
