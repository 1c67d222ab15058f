/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contract/log_report.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/log_pattern.h"

#define COUNT_MAX 1e15 /* steps, epochs: far below 2^53 */
#define NUMBER_MAX 63  /* characters; more are no number that a script prints */

struct reading {
    struct status_document *report;
    /* Where in the log the value was found: a later one replaces it. */
    const char *step_at, *total_at, *epoch_at, *metric_at[STATUS_METRICS_MAX];
    const char *metric_end[STATUS_METRICS_MAX], *metric_step_at[STATUS_METRICS_MAX]; /* of its line, and of its step */
};

static bool parse_number(const char *text, size_t length, double *ret_value)
{
    char copy[NUMBER_MAX + 1], *end;
    if (length > NUMBER_MAX)
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    *ret_value = strtod(copy, &end);
    return end != copy && *end == '\0' && isfinite(*ret_value);
}

/* Scripts print epochs as fractions, too. */
static void take_count(const char *text, double value, int64_t *count, const char **at)
{
    if (value < 0 || value > COUNT_MAX || (*at && text < *at))
        return;
    *count = (int64_t)value;
    *at = text;
}

static void take_metric(struct reading *reading, const char *name, const char *text, double value)
{
    struct status_document *report = reading->report;
    unsigned i = 0;
    while (i < report->metric_count && strcmp(report->metrics[i].name, name) != 0)
        i++;
    if (i == STATUS_METRICS_MAX || strlen(name) >= STATUS_METRIC_NAME_MAX ||
        (i < report->metric_count && text < reading->metric_at[i]))
        return;
    if (i == report->metric_count) {
        report->metric_count++;
        memcpy(report->metrics[i].name, name, strlen(name) + 1);
    }
    report->metrics[i].value = value;
    reading->metric_at[i] = text;
}

static void found(void *context, const char *group, const char *text, size_t length)
{
    struct reading *reading = context;
    double value;
    if (!parse_number(text, length, &value))
        return;
    if (strcmp(group, "step") == 0)
        take_count(text, value, &reading->report->step, &reading->step_at);
    else if (strcmp(group, "totalSteps") == 0)
        take_count(text, value, &reading->report->total_steps, &reading->total_at);
    else if (strcmp(group, "epoch") == 0)
        take_count(text, value, &reading->report->data_epoch, &reading->epoch_at);
    else
        take_metric(reading, group, text, value);
}

/* The step of a metric is the newest one before the end of its line. */
static void found_step(void *context, const char *group, const char *text, size_t length)
{
    struct reading *reading = context;
    struct status_document *report = reading->report;
    double value;
    if (strcmp(group, "step") != 0 || !parse_number(text, length, &value) || value < 0 || value > COUNT_MAX)
        return;
    for (unsigned i = 0; i < report->metric_count; i++) {
        if (text >= reading->metric_end[i] || (reading->metric_step_at[i] && text < reading->metric_step_at[i]))
            continue;
        report->metrics[i].step = (int64_t)value;
        reading->metric_step_at[i] = text;
    }
}

static const char *line_end(const char *text, const char *end)
{
    while (text < end && *text != '\n' && *text != '\r')
        text++;
    return text;
}

static int search(const char *expression, const char *log, size_t length, log_pattern_found *take,
                  struct reading *reading, struct error *error)
{
    struct log_pattern *pattern;
    if (log_pattern_new(expression, &pattern, error) < 0)
        return -1;
    int status = log_pattern_search(pattern, log, length, take, reading, error);
    log_pattern_free(pattern);
    return status;
}

int log_report_read(const char *const *expressions, unsigned count, const char *log, size_t length,
                    struct status_document *ret_report, struct error *error)
{
    struct reading reading = {.report = ret_report};
    int status = 0;
    status_document_init(ret_report);
    for (unsigned i = 0; i < count; i++) {
        struct error flaw = ERROR_INIT;
        if (search(expressions[i], log, length, found, &reading, &flaw) < 0)
            status = error_set(error, flaw.kind, "progress.logPatterns[%u]: %s", i, flaw.message);
    }
    for (unsigned i = 0; i < ret_report->metric_count; i++)
        reading.metric_end[i] = line_end(reading.metric_at[i], log + length);
    for (unsigned i = 0; i < count && reading.step_at && ret_report->metric_count > 0; i++)
        search(expressions[i], log, length, found_step, &reading, NULL);
    return status;
}
