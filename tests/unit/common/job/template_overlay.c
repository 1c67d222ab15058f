/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/template_overlay.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/json_of.h"

Test(template_overlay, table)
{
    static const struct {
        const char *base, *overlay, *expected;
    } rows[] = {
        {"{\"a\":{\"b\":1}}", "{\"a\":{\"c\":2}}", "{\"a\":{\"b\":1,\"c\":2}}"},
        {"{\"a\":1,\"b\":2}", "{\"a\":null}", "{\"b\":2}"},
        {"{\"args\":[1,2]}", "{\"args\":[3]}", "{\"args\":[3]}"},
        {"{\"env\":[{\"name\":\"A\",\"value\":\"1\"}]}", "{\"env\":[{\"name\":\"B\",\"value\":\"2\"}]}",
         "{\"env\":[{\"name\":\"A\",\"value\":\"1\"},{\"name\":\"B\",\"value\":\"2\"}]}"},
        {"{\"env\":[{\"name\":\"A\",\"value\":\"1\"}]}", "{\"env\":[{\"name\":\"A\",\"valueFrom\":{\"x\":1}}]}",
         "{\"env\":[{\"name\":\"A\",\"valueFrom\":{\"x\":1}}]}"},
        {"{\"volumeMounts\":[{\"mountPath\":\"/a\",\"name\":\"x\"}]}",
         "{\"volumeMounts\":[{\"mountPath\":\"/a\",\"name\":\"y\"}]}",
         "{\"volumeMounts\":[{\"mountPath\":\"/a\",\"name\":\"y\"}]}"},
        {"{\"containers\":[{\"name\":\"t\",\"image\":\"i\"}]}", "{\"containers\":[{\"image\":\"nameless\"}]}",
         "{\"containers\":[{\"name\":\"t\",\"image\":\"i\"},{\"image\":\"nameless\"}]}"},
        {"{\"readinessProbe\":{\"httpGet\":{\"port\":1},\"periodSeconds\":1}}",
         "{\"readinessProbe\":{\"exec\":{\"command\":[\"true\"]}}}",
         "{\"readinessProbe\":{\"exec\":{\"command\":[\"true\"]},\"periodSeconds\":1}}"},
        {"{\"readinessProbe\":{\"httpGet\":{\"port\":1,\"path\":\"/\"}}}",
         "{\"readinessProbe\":{\"httpGet\":{\"port\":2}}}",
         "{\"readinessProbe\":{\"httpGet\":{\"port\":2,\"path\":\"/\"}}}"},
        {"{\"volumes\":[{\"name\":\"a\",\"persistentVolumeClaim\":{\"claimName\":\"c\"}},{\"name\":\"b\"}]}",
         "{\"volumes\":[{\"name\":\"a\",\"emptyDir\":{}}]}",
         "{\"volumes\":[{\"name\":\"a\",\"emptyDir\":{}},{\"name\":\"b\"}]}"},
        {"{\"volumes\":[{\"name\":\"a\",\"emptyDir\":{\"medium\":\"Memory\"}}]}",
         "{\"volumes\":[{\"name\":\"a\",\"emptyDir\":{\"sizeLimit\":\"1Gi\"}}]}",
         "{\"volumes\":[{\"name\":\"a\",\"emptyDir\":{\"medium\":\"Memory\",\"sizeLimit\":\"1Gi\"}}]}"},
        {"{\"a\":1}", "[]", "{\"a\":1}"},
        {"{\"a\":{\"b\":1}}", "{\"a\":\"text\"}", "{\"a\":\"text\"}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SCOPED_JSON *base = json_of(rows[i].base);
        SCOPED_JSON *overlay = json_of(rows[i].overlay);
        SCOPED_JSON *expected = json_of(rows[i].expected);
        template_overlay(base, overlay);
        cr_expect(json_equal(base, expected), "row %zu", i);
    }
}

static struct json *broad(const char *list, size_t count, bool objects)
{
    struct json *overlay = json_new_object(), *elements = json_set(overlay, list, json_new_array());
    for (size_t i = 0; i < count; i++)
        json_append(elements, objects ? json_new_object() : json_new_number(1));
    return overlay;
}

static bool is_taken(const char *list, size_t count, bool objects)
{
    struct error error = ERROR_INIT;
    SCOPED_JSON *overlay = broad(list, count, objects);
    bool taken = template_overlay_check(overlay, &error) == 0;
    cr_expect(taken || (error.kind == ERROR_INVALID && strstr(error.message, list)), "%s", error.message);
    return taken;
}

Test(template_overlay, what_is_too_broad_is_not_laid_over)
{
    cr_expect(is_taken("env", TEMPLATE_BREADTH_MAX, true));
    cr_expect_not(is_taken("env", TEMPLATE_BREADTH_MAX + 1, true));
    cr_expect(is_taken("args", 100 * TEMPLATE_BREADTH_MAX, false), "it replaces another");
    SCOPED_JSON *overlay = json_new_object(), *fields = json_new_object();
    for (int i = 0; i <= TEMPLATE_BREADTH_MAX; i++) {
        char name[16];
        snprintf(name, sizeof name, "k%d", i);
        json_set_integer(fields, name, i);
    }
    json_set(overlay, "deeper", json_copy(fields));
    cr_expect_lt(template_overlay_check(overlay, NULL), 0);
}

Test(template_overlay, a_null_stays_where_the_result_is_a_template)
{
    SCOPED_JSON *base = json_of("{\"a\":1,\"b\":{\"c\":2}}");
    SCOPED_JSON *overlay = json_of("{\"a\":null,\"b\":{\"d\":null}}");
    SCOPED_JSON *merged = json_of("{\"a\":null,\"b\":{\"c\":2,\"d\":null}}");
    template_merge(base, overlay);
    cr_expect(json_equal(base, merged));
}
