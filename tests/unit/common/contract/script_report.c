/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contract/script_report.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIXTEEN                                                                                                        \
    "\"a\":0,\"b\":1,\"c\":2,\"d\":3,\"e\":4,\"f\":5,\"g\":6,\"h\":7,\"i\":8,\"j\":9,\"k\":10,\"l\":11,\"m\":12,"      \
    "\"n\":13,\"o\":14,\"p\":15"
#define LETTERS_62 "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghij"

/* What is read, as words "name=value …", then step and epoch; the flaw is a part of the one that is told, "" for none. */
static const struct {
    const char *what, *message, *words, *flaw;
} cases[] = {
    {"nothing", "", "", ""},
    {"blanks", " \n\r\n\t", "", ""},
    {"other text", "all is well\n", "", ""},
    {"other values", "[1, 2]", "", ""},
    {"an object of something else", "{\"result\": \"ok\"}", "", ""},
    {"one metric", "{\"metrics\": {\"bleu\": 27.4}}", "bleu=27.4", ""},
    {"all members", "{\"epoch\":2,\"metrics\":{\"validationLoss\":0.31,\"bleu\":-2e-7},\"step\":3000}\n",
     "validationLoss=0.31 bleu=-2e-07 step=3000 epoch=2", ""},
    {"steps alone", "{\"step\":0}", "step=0", ""},
    {"the last line of several", "{\"metrics\":{\"loss\":2}}\nepoch 1\n{\"metrics\":{\"loss\":1}}\r\n\n", "loss=1", ""},
    {"an object of several lines", "\n{\n  \"metrics\": {\n    \"loss\": 1\n  }\n}\n", "loss=1", ""},
    {"text after the report", "{\"metrics\":{\"loss\":1}}\nbye\n", "", "not JSON"},
    {"not JSON", "{'metrics': {'loss': 1}}", "", "not JSON"},
    {"a message that was cut", "{\"metrics\":{\"loss\":", "", "not JSON"},
    {"NaN", "{\"metrics\":{\"loss\":NaN}}", "", "the metric loss is NaN, not a finite number"},
    {"NaN among others", "{\"metrics\": {\"loss\": NaN, \"bleu\": 27.4}, \"step\": 3000}", "bleu=27.4 step=3000",
     "the metric loss is NaN, not a finite number"},
    {"what is infinite", "{\"metrics\":{\"a\":-Infinity,\"b\":Infinity,\"c\":2,\"d\":inf,\"e\":-nan}}", "c=2",
     "4 of its values cannot be used, the first: the metric a is -Infinity, not"},
    {"NaN in strings", "{\"metrics\":{\"NaN\":1,\"\\\"nan\":2,\"c\":\"inf\",\"d\":nan,\"e\":\"nano\"}}",
     "NaN=1 \"nan=2", "3 of its values cannot be used, the first: the metric c is inf"},
    {"a step that is NaN", "{\"step\":NaN,\"epoch\":2,\"other\":NaN}", "epoch=2", "step is not a whole number"},
    {"NaN in what is no JSON", "{\"metrics\":{\"loss\":NaN}", "", "not JSON: 'N' at offset 19"},
    {"beyond the doubles", "{\"metrics\":{\"loss\":1e999}}", "", "a number above 1.7e308"},
    {"no list", "{\"metrics\":[1],\"step\":4}", "step=4", "metrics is of type array, not an object"},
    {"metrics that are null", "{\"metrics\":null}", "", "metrics is of type null"},
    {"a value that is no number", "{\"metrics\":{\"a\":\"1\",\"b\":2}}", "b=2",
     "the metric a is of type string, not a number"},
    {"null and true", "{\"metrics\":{\"a\":null,\"b\":2,\"c\":true}}", "b=2",
     "2 of its values cannot be used, the first: the metric a is of type null"},
    {"an empty name", "{\"metrics\":{\"\":1,\"b\":2}}", "b=2", "a metric has an empty name"},
    {"the longest name", "{\"metrics\":{\"" LETTERS_62 "x\":1}}", LETTERS_62 "x=1", ""},
    {"a longer name", "{\"metrics\":{\"" LETTERS_62 "xy\":1,\"b\":2}}", "b=2",
     "the name of the metric abcdefghijklmnopqrst… has 64 bytes, more than 63"},
    {"a name for terminals", "{\"metrics\":{\"a\\u001b[31m\":1,\"\\u007f\":1,\"\\u00e9\":2}}", "\u00e9=2",
     "2 of its values cannot be used, the first: the name of a metric has a control character"},
    {"a name twice", "{\"metrics\":{\"a\":1,\"a\":2}}", "a=2", ""},
    {"sixteen", "{\"metrics\":{" SIXTEEN "}}", "a=0 b=1 c=2 d=3 e=4 f=5 g=6 h=7 i=8 j=9 k=10 l=11 m=12 n=13 o=14 p=15",
     ""},
    {"seventeen", "{\"metrics\":{" SIXTEEN ",\"q\":16}}",
     "a=0 b=1 c=2 d=3 e=4 f=5 g=6 h=7 i=8 j=9 k=10 l=11 m=12 n=13 o=14 p=15",
     "the report has more than 16 metrics; q is left out"},
    {"half a step", "{\"step\":1.5,\"epoch\":-1}", "",
     "2 of its values cannot be used, the first: step is not a whole"},
};

static void describe(const struct status_document *report, struct buffer *out)
{
    for (unsigned i = 0; i < report->metric_count; i++)
        buffer_format(out, " %s=%.6g", report->metrics[i].name, report->metrics[i].value);
    if (report->step != STATUS_UNKNOWN)
        buffer_format(out, " step=%ld", (long)report->step);
    if (report->data_epoch != STATUS_UNKNOWN)
        buffer_format(out, " epoch=%ld", (long)report->data_epoch);
}

Test(script_report, what_is_read)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct status_document report;
        struct error flaw;
        SCOPED_BUFFER words = BUFFER_INIT(4096);
        script_report_read(cases[i].message, &report, &flaw);
        describe(&report, &words);
        const char *read = buffer_text(&words);
        cr_expect_str_eq(*read ? read + 1 : read, cases[i].words, "%s: '%s'", cases[i].what, read);
        cr_expect(flaw.kind == ERROR_NONE ? !*cases[i].flaw : *cases[i].flaw && strstr(flaw.message, cases[i].flaw),
                  "%s: %s", cases[i].what, flaw.message);
    }
}

Test(script_report, a_message_beyond_the_limit)
{
    char message[SCRIPT_REPORT_MAX + 2];
    memset(message, ' ', sizeof message);
    memcpy(message, "{\"step\":7", 9);
    message[SCRIPT_REPORT_MAX] = '}';
    message[SCRIPT_REPORT_MAX + 1] = '\0';
    struct status_document report;
    struct error flaw;
    script_report_read(message, &report, &flaw);
    cr_expect_eq(flaw.kind, ERROR_TOO_LARGE);
    cr_expect_eq(report.step, STATUS_UNKNOWN);
    message[SCRIPT_REPORT_MAX - 1] = '}';
    message[SCRIPT_REPORT_MAX] = '\0';
    script_report_read(message, &report, &flaw);
    cr_expect_eq(flaw.kind, ERROR_NONE);
    cr_expect_eq(report.step, 7);
}

/* A report with one byte replaced by any other, a zero included: what is read is within the limits. */
Test(script_report, damaged_reports)
{
    static const char whole[] = "x\n{\"metrics\":{\"loss\":0.5,\"\\u00e9\":-1e3},\"step\":12,\"epoch\":1}";
    for (size_t at = 0; at + 1 < sizeof whole; at++)
        for (int byte = 0; byte < 256; byte++) {
            char message[sizeof whole];
            memcpy(message, whole, sizeof whole);
            message[at] = (char)byte;
            struct status_document report;
            struct error flaw;
            script_report_read(message, &report, &flaw);
            cr_assert(report.metric_count <= 2 && report.step >= STATUS_UNKNOWN && report.data_epoch >= STATUS_UNKNOWN);
            for (unsigned i = 0; i < report.metric_count; i++)
                cr_assert(*report.metrics[i].name && strlen(report.metrics[i].name) < STATUS_METRIC_NAME_MAX);
        }
}
