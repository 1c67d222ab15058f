/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/template_overlay.h"

#include <criterion/criterion.h>
#include <string.h>

static struct json *parse(const char *text)
{
    struct json *value = NULL;
    struct error error = ERROR_INIT;
    cr_assert_eq(json_parse(text, strlen(text), 1 << 16, &value, &error), 0, "%s: %s", text, error.message);
    return value;
}

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
        SCOPED_JSON *base = parse(rows[i].base);
        SCOPED_JSON *overlay = parse(rows[i].overlay);
        SCOPED_JSON *expected = parse(rows[i].expected);
        template_overlay(base, overlay);
        cr_expect(json_equal(base, expected), "row %zu", i);
    }
}
