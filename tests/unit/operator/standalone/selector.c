/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/selector.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/json_of.h"

TestSuite(selector);

static bool selects(const char *text, const char *labels)
{
    struct error error = ERROR_INIT;
    struct selector selector;
    SCOPED_JSON *json = json_of(labels);
    cr_assert_eq(selector_parse_labels(text, &selector, &error), 0, "%s: %s", text, error.message);
    bool matches = selector_matches_labels(&selector, json);
    selector_release(&selector);
    return matches;
}

Test(selector, label_operators)
{
    const char *labels = "{\"a\":\"1\",\"b\":\"x\"}";
    static const char *const good[] = {"",           "a=1",         "a==1",        "a!=2",   "c!=1",
                                       "a in (1,2)", "a notin (3)", "c notin (1)", "a,b",    "!c",
                                       "a>0",        "a<2",         "a=1,b=x,!c",  " a = 1 "};
    static const char *const bad[] = {"a=2", "a!=1", "a in (2,3)", "a notin (1)", "c", "!a", "a>1", "a=1,b=y"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        cr_expect(selects(good[i], labels), "%s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        cr_expect_not(selects(bad[i], labels), "%s", bad[i]);
}

Test(selector, malformed_labels_are_refused)
{
    static const char *const bad[] = {"=", "a in", "a in (1", "a b", "!", "a=1;b", ",,"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct selector selector;
        struct error error = ERROR_INIT;
        cr_expect_eq(selector_parse_labels(bad[i], &selector, &error), -1, "%s", bad[i]);
        cr_expect_eq(error.kind, ERROR_INVALID);
    }
}

Test(selector, fields_are_those_of_the_type)
{
    struct resource_table *table = resource_table_new();
    const struct resource *pods = resource_find_plural(table, "pods");
    SCOPED_JSON *pod = json_of("{\"metadata\":{\"name\":\"p\"},\"status\":{\"phase\":\"Running\"}}");
    struct selector selector;
    struct error error = ERROR_INIT;
    cr_assert_eq(selector_parse_fields(pods, "metadata.name=p,status.phase!=Failed", &selector, &error), 0);
    cr_expect(selector_matches_fields(&selector, pod));
    selector_release(&selector);
    cr_expect_eq(selector_parse_fields(pods, "spec.containers=1", &selector, &error), -1);
    cr_expect_str_eq(error.message, "field label not supported: spec.containers");
    resource_table_free(table);
}
