/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/push_report.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "common/memory.h"

#define WORDS_MAX 512

/* What is read, as words. */
static const struct {
    const char *what, *text, *words;
} cases[] = {
    {"what Transformers sends during the training",
     "{\"trainerStatus\":{\"lastUpdatedTime\":\"2026-11-20T14:00:00+00:00\",\"progressPercentage\":75,"
     "\"estimatedRemainingSeconds\":120,\"metrics\":[{\"name\":\"loss\",\"value\":\"0.31\"},{\"name\":\"epoch\","
     "\"value\":\"0.5\"},{\"name\":\"current_step\",\"value\":\"1500\"},{\"name\":\"total_steps\",\"value\":\"2000\"},"
     "{\"name\":\"current_epoch\",\"value\":\"1.75\"}]}}",
     "percent=75 left=120 step=1500 of 2000 epoch=1 loss=0.31@1500"},
    {"what it sends at the end",
     "{\"trainerStatus\":{\"progressPercentage\":100,\"estimatedRemainingSeconds\":0,\"metrics\":[{\"name\":"
     "\"train_loss\",\"value\":\"2.5e-1\"}]}}",
     "percent=100 left=0 train_loss=0.25@0"},
    {"numbers outside strings", "{\"trainerStatus\":{\"metrics\":[{\"name\":\"bleu\",\"value\":27.4}]}}",
     "bleu=27.4@0"},
    {"the newest value of a name",
     "{\"trainerStatus\":{\"metrics\":[{\"name\":\"a\",\"value\":1},{\"name\":\"a\",\"value\":2}]}}", "a=2@0"},
    {"null is absent", "{\"trainerStatus\":{\"progressPercentage\":null,\"metrics\":null}}", ""},
    {"no status", "{\"trainerStatus\":null}", ""},
    {"other members", "{\"other\":1,\"trainerStatus\":{\"more\":[]}}", ""},
    {"a fraction of a second", "{\"trainerStatus\":{\"estimatedRemainingSeconds\":1.9}}", "left=1"},
    {"steps below zero", "{\"trainerStatus\":{\"metrics\":[{\"name\":\"step\",\"value\":\"-3\"}]}}", ""},
};

static void write_words(const struct status_document *report, char words[WORDS_MAX])
{
    size_t length = 0;
    words[0] = '\0';
#define WORD(...) length += (size_t)snprintf(words + length, WORDS_MAX - length, __VA_ARGS__)
    if (report->percent != STATUS_UNKNOWN)
        WORD("percent=%lld ", (long long)report->percent);
    if (report->seconds_remaining != STATUS_UNKNOWN)
        WORD("left=%lld ", (long long)report->seconds_remaining);
    if (report->step != STATUS_UNKNOWN)
        WORD("step=%lld ", (long long)report->step);
    if (report->total_steps != STATUS_UNKNOWN)
        WORD("of %lld ", (long long)report->total_steps);
    if (report->data_epoch != STATUS_UNKNOWN)
        WORD("epoch=%lld ", (long long)report->data_epoch);
    for (unsigned i = 0; i < report->metric_count; i++)
        WORD("%s=%g@%lld ", report->metrics[i].name, report->metrics[i].value, (long long)report->metrics[i].step);
#undef WORD
    if (length > 0)
        words[length - 1] = '\0';
}

Test(push_report, reads_what_scripts_send)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct status_document report;
        struct error flaw, error = ERROR_INIT;
        char words[WORDS_MAX];
        cr_assert_eq(push_report_read(cases[i].text, strlen(cases[i].text), &report, &flaw, &error), 0, "%s: %s",
                     cases[i].what, error.message);
        write_words(&report, words);
        cr_expect_str_eq(words, cases[i].words, "%s: %s", cases[i].what, words);
        cr_expect_eq(flaw.kind, ERROR_NONE, "%s: %s", cases[i].what, flaw.message);
    }
}

static const struct {
    const char *text, *message;
} refused[] = {
    {"", "the report is not JSON"},
    {"{\"trainerStatus\":", "the report is not JSON"},
    {"[]", "the report is of type array"},
    {"{\"trainerStatus\":7}", "trainerStatus is of type number"},
    {"{\"trainerStatus\":{\"progressPercentage\":\"75\"}}", "progressPercentage is of type string; write a number"},
    {"{\"trainerStatus\":{\"progressPercentage\":101}}", "progressPercentage is 101; it must be from 0 to 100"},
    {"{\"trainerStatus\":{\"progressPercentage\":-1}}", "progressPercentage is -1"},
    {"{\"trainerStatus\":{\"estimatedRemainingSeconds\":-5}}", "estimatedRemainingSeconds is -5"},
    {"{\"trainerStatus\":{\"metrics\":{\"loss\":1}}}", "metrics is of type object; write a list"},
    {"{\"trainerStatus\":{\"metrics\":[1]}}", "an element of metrics is of type number"},
    {"{\"trainerStatus\":{\"metrics\":[{\"value\":1}]}}", "the name of a metric is of type nothing"},
    {"{\"trainerStatus\":{\"metrics\":[{\"name\":\"a\",\"value\":[]}]}}", "the value of a metric is of type array"},
};

Test(push_report, refuses_another_form_and_says_what_to_write)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct status_document report;
        struct error flaw, error = ERROR_INIT;
        cr_assert_lt(push_report_read(refused[i].text, strlen(refused[i].text), &report, &flaw, &error), 0, "%s",
                     refused[i].text);
        cr_expect_eq(error.kind, ERROR_INVALID);
        cr_expect_not_null(strstr(error.message, refused[i].message), "%s: %s", refused[i].text, error.message);
    }
}

Test(push_report, refuses_what_is_too_long)
{
    SCOPED_FREE char *text = memory_allocate(PUSH_REPORT_MAX + 2, 1);
    struct status_document report;
    struct error flaw, error = ERROR_INIT;
    memset(text, ' ', PUSH_REPORT_MAX + 1);
    text[0] = '{', text[PUSH_REPORT_MAX] = '}';
    cr_assert_lt(push_report_read(text, PUSH_REPORT_MAX + 1, &report, &flaw, &error), 0);
    cr_expect_eq(error.kind, ERROR_TOO_LARGE);
}

static const struct {
    const char *metric, *flaw;
} left_out[] = {
    {"{\"name\":\"loss\",\"value\":\"nan\"}", "the metric loss was left out: its value is not a finite number"},
    {"{\"name\":\"loss\",\"value\":\"1e999\"}", "the metric loss was left out: its value is not a finite number"},
    {"{\"name\":\"loss\",\"value\":\"one\"}", "the metric loss was left out: its value is not a finite number"},
    {"{\"name\":\"\",\"value\":1}", "a metric with an empty name was left out"},
    {"{\"name\":\"a\\u001b[31m\",\"value\":1}", "a metric with a control character in its name was left out"},
    {"{\"name\":\"a234567890123456789012345678901234567890123456789012345678901234\",\"value\":1}",
     "the metric a2345678901234567890… was left out: its name has 64 bytes, more than 63"},
};

Test(push_report, leaves_out_what_it_cannot_use_and_keeps_the_rest)
{
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++) {
        SCOPED_FREE char *text =
            memory_format("{\"trainerStatus\":{\"metrics\":[%s,{\"name\":\"bleu\",\"value\":2}]}}", left_out[i].metric);
        struct status_document report;
        struct error flaw, error = ERROR_INIT;
        cr_assert_eq(push_report_read(text, strlen(text), &report, &flaw, &error), 0, "%s", error.message);
        cr_expect_str_eq(flaw.message, left_out[i].flaw);
        cr_expect_eq(report.metric_count, 1);
        cr_expect_str_eq(report.metrics[0].name, "bleu");
    }
}

Test(push_report, keeps_sixteen_metrics)
{
    SCOPED_BUFFER text = BUFFER_INIT(PUSH_REPORT_MAX);
    struct status_document report;
    struct error flaw, error = ERROR_INIT;
    buffer_format(&text, "{\"trainerStatus\":{\"metrics\":[");
    for (int i = 0; i < 20; i++)
        buffer_format(&text, "%s{\"name\":\"m%d\",\"value\":%d}", i ? "," : "", i, i);
    buffer_format(&text, "]}}");
    cr_assert_eq(push_report_read(buffer_text(&text), text.length, &report, &flaw, &error), 0, "%s", error.message);
    cr_expect_eq(report.metric_count, STATUS_METRICS_MAX);
    cr_expect_str_eq(flaw.message, "the metric m16 was left out: a report has at most 16");
}
