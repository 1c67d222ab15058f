/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/pod_fields.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/buffer.h"
#include "tests/unit/json_of.h"

static const struct {
    const char *pod, *unknown; /* joined by blanks */
} rows[] = {
    {"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"labels\":{\"any\":\"1\"}},\"spec\":{\"nodeSelector\":{"
     "\"any\":"
     "\"1\"},\"containers\":[{\"name\":\"a\",\"resources\":{\"limits\":{\"example.com/"
     "any\":\"1\"}},\"readinessProbe\":null}]},"
     "\"status\":{\"any\":1}}",
     ""},
    {"{\"spec\":{\"containers\":[{\"name\":\"a\"},{\"name\":\"b\",\"imagePullPolcy\":\"Never\",\"env\":[{\"nam\":\"X\"}"
     "]}]}}",
     "spec.containers[1].imagePullPolcy spec.containers[1].env[0].nam"},
    {"{\"spec\":{\"initContainers\":[{\"resources\":{\"limit\":{}}}],\"toleration\":[]},\"meta\":1}",
     "spec.initContainers[0].resources.limit spec.toleration meta"},
    {"{\"spec\":{\"affinity\":{\"podAntiAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[{"
     "\"topologyKy\":\"x\"}]"
     "}},\"volumes\":[{\"name\":\"v\",\"projected\":{\"sources\":[{\"secret\":{\"nme\":\"s\"}}]}}]}}",
     "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKy "
     "spec.volumes[0].projected.sources[0].secret.nme"},
    {"{\"spec\":{\"containers\":{\"name\":\"no list\"},\"volumes\":[3]}}", ""},
    {"{\"spec\":{\"container\":[],\"nam\":1,\"s\":2}}", "spec.container spec.nam spec.s"},
};

static const struct {
    const char *pod, *wrong; /* the path; NULL: none is wrong */
} quantities[] = {
    {"{\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"memory\":\"512Mi\",\"cpu\":\"1.5\",\"a.b/c\":2},"
     "\"requests\":{\"cpu\":\"500m\",\"memory\":\"2e3\"}}}],\"overhead\":{\"cpu\":\".5\"},"
     "\"volumes\":[{\"emptyDir\":{\"sizeLimit\":\"1E\"}},{\"emptyDir\":{\"sizeLimit\":null}}]}}",
     NULL},
    {"{\"spec\":{\"containers\":[{},{\"resources\":{\"limits\":{\"memory\":\"512Mbyte\"}}}]}}",
     "spec.containers[1].resources.limits.memory: quantities must match"},
    {"{\"spec\":{\"initContainers\":[{\"resources\":{\"requests\":{\"cpu\":\"\"}}}]}}",
     "spec.initContainers[0].resources.requests.cpu: quantities must match"},
    {"{\"spec\":{\"volumes\":[{\"emptyDir\":{\"sizeLimit\":\"5mm\"}}]}}",
     "spec.volumes[0].emptyDir.sizeLimit: unable to parse quantity's suffix"},
    {"{\"spec\":{\"overhead\":{\"cpu\":true}}}", "spec.overhead.cpu: quantities must match"},
    {"{\"spec\":{\"overhead\":{\"cpu\":\"1.2.3\"}}}", "spec.overhead.cpu: quantities must match"},
    {"{\"spec\":{\"overhead\":{\"cpu\":\"1e\"}}}", "spec.overhead.cpu: unable to parse"},
};

Test(pod_fields, what_is_no_quantity_is_named)
{
    for (size_t i = 0; i < sizeof quantities / sizeof *quantities; i++) {
        SCOPED_JSON *unknown = json_new_array();
        SCOPED_JSON *pod = json_of(quantities[i].pod);
        SCOPED_FREE char *wrong = pod_fields_check(pod, unknown);
        if (!quantities[i].wrong)
            cr_expect_null(wrong, "%s", wrong);
        else
            cr_expect(wrong && strstr(wrong, quantities[i].wrong) == wrong, "%s", wrong);
    }
}

Test(pod_fields, what_a_pod_does_not_have_is_named_and_dropped)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SCOPED_JSON *unknown = json_new_array();
        SCOPED_JSON *pod = json_of(rows[i].pod);
        SCOPED_FREE char *wrong = pod_fields_check(pod, unknown);
        SCOPED_BUFFER text = BUFFER_INIT(4096);
        for (const struct json *path = json_first(unknown); path; path = json_next(path))
            buffer_format(&text, "%s%s", text.length ? " " : "", json_string(path, ""));
        cr_expect_str_eq(buffer_text(&text), rows[i].unknown);
        SCOPED_JSON *none = json_new_array();
        SCOPED_FREE char *still_wrong = pod_fields_check(pod, none);
        cr_expect_eq(json_count(none), 0, "row %zu", i);
        cr_expect(!wrong && !still_wrong, "row %zu", i);
    }
}
