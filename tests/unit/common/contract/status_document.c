/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contract/status_document.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static struct status_document sample(void)
{
    struct status_document document;
    status_document_init(&document);
    snprintf(document.job_uid, sizeof document.job_uid, "6dc15d67-f388-4c64-9910-a6d4095ca3dc");
    snprintf(document.role, sizeof document.role, "worker");
    snprintf(document.message, sizeof document.message, "waiting for worker 1");
    document.incarnation = 5;
    document.index = 0;
    document.phase = STATUS_WAITING;
    document.step = 1200;
    document.examples_per_second = 51234.5;
    document.metric_count = 2;
    document.metrics[0] = (struct status_metric){.name = "loss", .value = 0.0312, .step = 1100};
    document.metrics[1] = (struct status_metric){.name = "diverged", .value = NAN};
    document.updated_at_ms = 1795183200000;
    return document;
}

Test(status_document, leaves_unknown_numbers_out)
{
    struct status_document document = sample();
    SCOPED_BUFFER out = BUFFER_INIT(STATUS_DOCUMENT_MAX);
    cr_assert(status_document_print(&document, &out, NULL) == 0);
    cr_expect_str_eq(
        buffer_text(&out),
        "{\"jobUID\":\"6dc15d67-f388-4c64-9910-a6d4095ca3dc\",\"role\":\"worker\","
        "\"message\":\"waiting for worker 1\",\"phase\":\"Waiting\",\"incarnation\":5,\"index\":0,\"step\":1200,"
        "\"examplesPerSecond\":51234.5,\"metrics\":[{\"name\":\"loss\",\"value\":0.0312,\"step\":1100}],"
        "\"updatedAt\":\"2026-11-20T14:00:00Z\"}");
}

Test(status_document, comes_back)
{
    struct status_document document = sample(), read;
    SCOPED_BUFFER out = BUFFER_INIT(STATUS_DOCUMENT_MAX);
    cr_assert(status_document_print(&document, &out, NULL) == 0);
    cr_assert(status_document_parse(out.data, out.length, &read, NULL) == 0);
    document.metric_count = 1;
    cr_expect_str_eq(read.job_uid, document.job_uid);
    cr_expect_str_eq(read.role, document.role);
    cr_expect_str_eq(read.message, document.message);
    cr_expect(read.incarnation == 5 && read.index == 0 && read.step == 1200 && read.phase == STATUS_WAITING);
    cr_expect(read.total_steps == STATUS_UNKNOWN && read.goodput == STATUS_UNKNOWN);
    cr_expect(read.examples_per_second == 51234.5);
    cr_expect(read.metric_count == 1 && read.metrics[0].value == 0.0312 && read.metrics[0].step == 1100);
    cr_expect_str_eq(read.metrics[0].name, "loss");
    cr_expect(read.updated_at_ms == document.updated_at_ms);
}

Test(status_document, an_empty_one_knows_nothing)
{
    struct status_document read;
    cr_assert(status_document_parse("{\"new\": [1]}", 12, &read, NULL) == 0);
    cr_expect(read.step == STATUS_UNKNOWN && read.metric_count == 0 && *read.job_uid == '\0');
}

Test(status_document, refuses_what_is_wrong_by_name)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"[]", "not an object"},
        {"{\"step\":", "not JSON"},
        {"{\"step\":-3}", "step"},
        {"{\"step\":1.5}", "step"},
        {"{\"step\":\"1\"}", "step is a string"},
        {"{\"incarnation\":1e300}", "incarnation"},
        {"{\"goodput\":null}", "goodput"},
        {"{\"jobUID\":7}", "jobUID is a number"},
        {"{\"role\":\"0123456789012345678901234567890123456789\"}", "role has 40 bytes, but at most 31 are allowed"},
        {"{\"phase\":\"Sleeping\"}", "phase 'Sleeping'"},
        {"{\"phase\":1}", "phase"},
        {"{\"metrics\":{}}", "metrics is an object"},
        {"{\"metrics\":[{\"name\":\"loss\"}]}", "a metric needs a name and a value"},
        {"{\"metrics\":[{\"name\":\"loss\",\"value\":\"1\"}]}", "metrics.value"},
        {"{\"metrics\":[1,2]}", "a metric needs"},
        {"{\"metrics\":[{\"name\":\"a\",\"value\":1},{\"name\":\"a\",\"value\":2}]}", "the metric a occurs twice"},
        {"{\"metrics\":[{\"name\":\"\",\"value\":1}]}", "an empty name"},
        {"{\"updatedAt\":\"noon\"}", "updatedAt"},
        {"{\"updatedAt\":\"9999-12-31T23:59:59-23:00\"}", "updatedAt"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct status_document read = {.step = 77};
        struct error error = ERROR_INIT;
        cr_expect(status_document_parse(cases[i].text, strlen(cases[i].text), &read, &error) < 0, "%s", cases[i].text);
        cr_expect(error.kind == ERROR_INVALID && strstr(error.message, cases[i].words) != NULL, "%s: %s", cases[i].text,
                  error.message);
        cr_expect(read.step == 77);
    }
}

Test(status_document, bounds_metrics_and_size)
{
    SCOPED_BUFFER text = BUFFER_INIT(4 * STATUS_DOCUMENT_MAX);
    buffer_append_string(&text, "{\"metrics\":[", NULL);
    for (int i = 0; i <= STATUS_METRICS_MAX; i++)
        buffer_format(&text, "%s{\"name\":\"m%d\",\"value\":%d}", i ? "," : "", i, i);
    buffer_append_string(&text, "]}", NULL);
    struct status_document read;
    struct error error = ERROR_INIT;
    cr_expect(status_document_parse(text.data, text.length, &read, &error) < 0 && error.kind == ERROR_INVALID);
    while (text.length <= STATUS_DOCUMENT_MAX)
        buffer_append_byte(&text, ' ', NULL);
    cr_expect(status_document_parse(text.data, text.length, &read, &error) < 0 && error.kind == ERROR_TOO_LARGE);
}

Test(status_document, every_phase_comes_back)
{
    for (int phase = STATUS_STARTING; phase <= STATUS_DONE; phase++) {
        struct status_document document, read;
        status_document_init(&document);
        document.phase = (enum status_phase)phase;
        SCOPED_BUFFER out = BUFFER_INIT(STATUS_DOCUMENT_MAX);
        cr_assert(status_document_print(&document, &out, NULL) == 0);
        cr_expect(status_document_parse(out.data, out.length, &read, NULL) == 0 && read.phase == document.phase);
    }
}

Test(status_document, saves_that_fail)
{
    struct status_document document = sample(), read;
    SCOPED_BUFFER out = BUFFER_INIT(STATUS_DOCUMENT_MAX);
    document.failed_saves = 3;
    document.refused_per_minute = 4872;
    snprintf(document.refused_from, sizeof document.refused_from, "10.1.2.3");
    snprintf(document.refused_reason, sizeof document.refused_reason, "data port: it is mute");
    snprintf(document.straggler_role, sizeof document.straggler_role, "worker");
    document.straggler_index = 2;
    document.straggler_ms = 512.5;
    document.straggler_due_ms = 50.25;
    document.straggler_seconds = 310;
    document.save_failure = SAVE_VOLUME_FULL;
    snprintf(document.save_message, sizeof document.save_message, "no space");
    cr_assert(status_document_print(&document, &out, NULL) == 0);
    cr_assert(status_document_parse(out.data, out.length, &read, NULL) == 0);
    cr_expect(read.failed_saves == 3 && read.save_failure == SAVE_VOLUME_FULL);
    cr_expect_eq(read.refused_per_minute, 4872);
    cr_expect_str_eq(read.refused_from, "10.1.2.3");
    cr_expect_str_eq(read.refused_reason, "data port: it is mute");
    cr_expect_str_eq(read.straggler_role, "worker");
    cr_expect(read.straggler_index == 2 && read.straggler_ms == 512.5 && read.straggler_due_ms == 50.25 &&
              read.straggler_seconds == 310);
    cr_expect_str_eq(read.save_message, "no space");
    static const char newer[] = "{\"failedSaves\":1,\"saveFailure\":\"Melted\"}";
    cr_assert(status_document_parse(newer, sizeof newer - 1, &read, NULL) == 0);
    cr_expect_eq(read.save_failure, SAVE_FAILED);
    static const char older[] = "{\"step\":1}";
    cr_assert(status_document_parse(older, sizeof older - 1, &read, NULL) == 0);
    cr_expect(read.failed_saves == STATUS_UNKNOWN && read.save_failure == SAVE_FINE);
}
