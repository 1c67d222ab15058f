/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/schema.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/json_of.h"

TestSuite(schema);

static const char schema_text[] =
    "{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\",\"required\":[\"kind\"],\"properties\":{"
    "\"kind\":{\"type\":\"string\",\"enum\":[\"A\",\"B\"]},"
    "\"count\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":9,\"default\":3},"
    "\"name\":{\"type\":\"string\",\"maxLength\":4,\"pattern\":\"^\\\\w+$\"},"
    "\"list\":{\"type\":\"array\",\"maxItems\":2,\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-keys\":["
    "\"n\"],"
    "\"items\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"string\"}}}},"
    "\"free\":{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true}}}}}";

static void expect_causes(const char *value_text, const char *expected)
{
    SCOPED_JSON *schema = json_of(schema_text), *value = json_of(value_text), *causes = json_new_array();
    SCOPED_BUFFER text = BUFFER_INIT(4096);
    schema_validate(schema, value, causes);
    for (const struct json *cause = json_first(causes); cause; cause = json_next(cause))
        buffer_format(&text, "%s: %s\n", json_string_at(cause, "field", ""), json_string_at(cause, "message", ""));
    cr_expect_str_eq(buffer_text(&text), expected);
}

Test(schema, says_what_is_wrong_as_the_api_server_does)
{
    expect_causes("{\"spec\":{\"kind\":\"A\"}}", "");
    expect_causes("{\"spec\":{}}", "spec.kind: Required value\n");
    expect_causes("{\"spec\":{\"kind\":\"C\"}}",
                  "spec.kind: Unsupported value: \"C\": supported values: \"A\", \"B\"\n");
    expect_causes("{\"spec\":{\"kind\":\"A\",\"count\":10}}",
                  "spec.count: Invalid value: 10: spec.count in body should be less than or equal to 9\n");
    expect_causes("{\"spec\":{\"kind\":\"A\",\"name\":\"a b\"}}",
                  "spec.name: Invalid value: \"a b\": spec.name in body should match '^\\w+$'\n");
    expect_causes("{\"spec\":{\"kind\":\"A\",\"count\":\"x\"}}",
                  "spec.count: Invalid value: \"string\": spec.count in body must be of type integer: \"string\"\n");
    expect_causes("{\"spec\":{\"kind\":\"A\",\"list\":[{\"n\":\"x\"},{\"n\":\"x\"}]}}",
                  "spec.list[1]: Duplicate value: {\"n\":\"x\"}\n");
}

Test(schema, prunes_and_defaults)
{
    SCOPED_JSON *schema = json_of(schema_text), *unknown = json_new_array();
    SCOPED_JSON *value =
        json_of("{\"kind\":\"T\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"kind\":\"A\",\"bogus\":1,\"name\":null,"
                "\"free\":{\"any\":1},\"list\":[{\"n\":\"x\",\"m\":1}]}}");
    schema_prune(schema, value, unknown);
    schema_default(schema, value);
    SCOPED_JSON *expected =
        json_of("{\"kind\":\"T\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"kind\":\"A\",\"count\":3,"
                "\"free\":{\"any\":1},\"list\":[{\"n\":\"x\"}]}}");
    SCOPED_JSON *paths = json_of("[\"spec.bogus\",\"spec.list[0].m\"]");
    cr_expect(json_equal(value, expected));
    cr_expect(json_equal(unknown, paths));
}
