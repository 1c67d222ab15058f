/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/json_path.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(json_path);

static const char text[] =
    "{\"a\":{\"b.c\":1},\"l\":[{\"name\":\"loss\",\"value\":\"0.5\"},{\"name\":\"x\",\"value\":\"2\"}]}";

static void expect(const char *path, const char *expected)
{
    SCOPED_JSON *root = NULL;
    SCOPED_BUFFER found = BUFFER_INIT(256);
    cr_assert_eq(json_parse(text, sizeof text - 1, sizeof text, &root, NULL), 0);
    const struct json *value = json_path_first(root, path);
    if (value)
        json_print(value, &found, NULL);
    cr_expect_str_eq(buffer_text(&found), expected, "%s gave %s", path, buffer_text(&found));
}

Test(json_path, finds_members_elements_and_filters)
{
    expect(".a.b\\.c", "1");
    expect(".a['b.c']", "1");
    expect(".l[0].name", "\"loss\"");
    expect(".l[-1].value", "\"2\"");
    expect(".l[?(@.name==\"loss\")].value", "\"0.5\"");
    expect(".l[?(@.name!='loss')].value", "\"2\"");
    expect(".l[*].name", "\"loss\"");
    expect(".none.x", "");
    expect(".l[", "");
}
