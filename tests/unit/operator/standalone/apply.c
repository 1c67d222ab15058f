/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/apply.h"

#include <criterion/criterion.h>
#include <string.h>

#include "operator/standalone/refusal.h"
#include "tests/unit/json_of.h"

#define CONDITIONS                                                                                                     \
    "{\"type\":\"array\",\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-keys\":[\"type\"],\"items\":"      \
    "{\"type\":\"object\",\"properties\":{\"type\":{\"type\":\"string\"},\"status\":{\"type\":\"string\"}}}}"
#define DEFINITION                                                                                                     \
    "{\"metadata\":{\"name\":\"things.x.dev\"},\"spec\":{\"group\":\"x.dev\",\"names\":{\"plural\":\"things\","        \
    "\"kind\":\"Thing\"},\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"subresources\":"            \
    "{\"status\":{}},\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":"         \
    "\"object\",\"additionalProperties\":{\"type\":\"integer\"}},\"status\":{\"type\":\"object\",\"properties\":"      \
    "{\"conditions\":" CONDITIONS ",\"words\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"set\",\"items\":"       \
    "{\"type\":\"string\"}},\"numbers\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}}}}}}}]}}"

static struct resource_table *table;
static struct json *object;

static void init(void)
{
    SCOPED_JSON *definition = json_of(DEFINITION);
    table = resource_table_new();
    cr_assert_eq(resource_define(table, definition, NULL), 0);
    object = json_of("{\"metadata\":{\"name\":\"a\"}}");
}

static void fini(void)
{
    json_free(object);
    resource_table_free(table);
}

TestSuite(apply, .init = init, .fini = fini);

/* Returns the code of the refusal, 0: none. */
static int apply(const char *manager, bool force, const char *config_text)
{
    SCOPED_JSON *config = json_of(config_text);
    struct apply_request request = {resource_find(table, "x.dev", "v1", "things"), manager, "status", force};
    struct json *fields = NULL;
    struct json *refused = apply_configuration(&request, config, object, &fields);
    int code = refused ? refusal_code(refused) : 0;
    json_free(refused);
    if (code == 0)
        json_set(json_member(object, "metadata"), "managedFields", fields);
    return code;
}

static void expect_status(const char *expected)
{
    SCOPED_BUFFER text = BUFFER_INIT(1 << 16);
    cr_assert_eq(json_print(json_member(object, "status"), &text, NULL), 0);
    cr_assert_str_eq(buffer_text(&text), expected);
}

#define READY(status) "{\"type\":\"Ready\",\"status\":\"" status "\"}"
#define DONE "{\"type\":\"Done\",\"status\":\"True\"}"

Test(apply, elements_of_a_keyed_list_belong_to_their_managers)
{
    cr_assert_eq(apply("a", false, "{\"status\":{\"conditions\":[" READY("True") "]}}"), 0);
    cr_assert_eq(apply("b", false, "{\"status\":{\"conditions\":[" DONE "]}}"), 0);
    expect_status("{\"conditions\":[" READY("True") "," DONE "]}");
    cr_assert_eq(json_count(json_at(object, "metadata.managedFields")), 2);
    cr_assert_eq(apply("a", false, "{\"status\":{\"conditions\":[" READY("False") "]}}"), 0);
    expect_status("{\"conditions\":[" READY("False") "," DONE "]}");
    cr_assert_eq(apply("b", false, "{\"status\":{}}"), 0);
    expect_status("{\"conditions\":[" READY("False") "]}");
}

Test(apply, what_two_say_stays_until_both_are_silent)
{
    cr_assert_eq(apply("a", false, "{\"status\":{\"conditions\":[" READY("True") "]}}"), 0);
    cr_assert_eq(apply("b", false, "{\"status\":{\"conditions\":[" READY("True") "]}}"), 0);
    cr_assert_eq(apply("a", false, "{\"status\":{}}"), 0);
    expect_status("{\"conditions\":[" READY("True") "]}");
    cr_assert_eq(apply("b", false, "{\"status\":{}}"), 0);
    cr_assert_eq(json_count(json_at(object, "status.conditions")), 0);
}

Test(apply, a_different_value_is_a_conflict_unless_forced)
{
    cr_assert_eq(apply("a", false, "{\"status\":{\"conditions\":[" READY("True") "]}}"), 0);
    cr_assert_eq(apply("b", false, "{\"status\":{\"conditions\":[" READY("False") "]}}"), 409);
    expect_status("{\"conditions\":[" READY("True") "]}");
    cr_assert_eq(apply("b", true, "{\"status\":{\"conditions\":[" READY("False") "]}}"), 0);
    expect_status("{\"conditions\":[" READY("False") "]}");
    cr_assert_eq(apply("a", false, "{\"status\":{}}"), 0);
    expect_status("{\"conditions\":[" READY("False") "]}");
}

Test(apply, sets_grow_by_element_and_other_lists_are_replaced)
{
    cr_assert_eq(apply("a", false, "{\"status\":{\"words\":[\"x\",\"y\"],\"numbers\":[1,2]}}"), 0);
    cr_assert_eq(apply("b", false, "{\"status\":{\"words\":[\"y\",\"z\"]}}"), 0);
    cr_assert_eq(apply("a", false, "{\"status\":{\"words\":[\"x\"],\"numbers\":[3]}}"), 0);
    expect_status("{\"words\":[\"x\",\"y\",\"z\"],\"numbers\":[3]}");
}

Test(apply, applying_the_same_again_changes_nothing)
{
    const char *config = "{\"status\":{\"conditions\":[" READY("True") "],\"words\":[\"x\"]}}";
    cr_assert_eq(apply("a", false, config), 0);
    cr_assert_eq(apply("b", false, "{\"status\":{\"numbers\":[1]}}"), 0);
    SCOPED_JSON *before = json_copy(object);
    cr_assert_eq(apply("a", false, config), 0);
    cr_assert(json_equal(before, object));
}

Test(apply, what_names_the_object_is_nobodys)
{
    cr_assert_eq(apply("a", false,
                       "{\"apiVersion\":\"x.dev/v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":\"a\"},"
                       "\"status\":{\"numbers\":[1]}}"),
                 0);
    const struct json *fields = json_member(json_first(json_at(object, "metadata.managedFields")), "fieldsV1");
    SCOPED_BUFFER text = BUFFER_INIT(1 << 16);
    json_print(fields, &text, NULL);
    cr_assert_str_eq(buffer_text(&text), "{\"f:status\":{\"f:numbers\":{}}}");
}
