/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/log_report.h"

#include <stdbool.h>
#include <string.h>

#include "common/job/job_document.h"
#include "common/job/string_format.h"
#include "common/log_pattern.h"

#define NUMBER_MAX 63 /* characters; more are no number that a script prints */

struct reading {
    struct status_document *report;
    bool in_line[STATUS_METRICS_MAX]; /* the metric stands in this line */
};

static bool parse_number(const char *text, size_t length, double *ret_value)
{
    char copy[NUMBER_MAX + 1];
    if (length > NUMBER_MAX)
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return finite_number(copy, ret_value);
}

static void found(void *context, const char *group, const char *text, size_t length)
{
    struct reading *reading = context;
    struct status_metric *metric;
    double value;
    if (!parse_number(text, length, &value))
        return;
    if (strcmp(group, "step") == 0)
        status_count_set(&reading->report->step, value);
    else if (strcmp(group, "totalSteps") == 0)
        status_count_set(&reading->report->total_steps, value);
    else if (strcmp(group, "epoch") == 0)
        status_count_set(&reading->report->data_epoch, value);
    else if ((metric = status_document_set_metric(reading->report, group, value, 0)))
        reading->in_line[metric - reading->report->metrics] = true;
}

/* A metric has the newest step at the end of its line. */
static void end_line(struct reading *reading)
{
    struct status_document *report = reading->report;
    for (unsigned i = 0; i < report->metric_count; i++) {
        if (reading->in_line[i])
            report->metrics[i].step = report->step > 0 ? report->step : 0;
        reading->in_line[i] = false;
    }
}

/* Where steps are known, a metric without one is older than the part of the log that was read, or than the first step: nobody could tell
 * after how many steps it was measured. */
static void leave_out_undated(struct status_document *report)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < report->metric_count; i++)
        if (report->step <= 0 || report->metrics[i].step > 0)
            report->metrics[kept++] = report->metrics[i];
    report->metric_count = kept;
}

static int read_lines(struct log_pattern *const *patterns, unsigned count, const char *log, size_t length,
                      struct status_document *report, int64_t *work_left, struct error *error)
{
    struct reading reading = {.report = report};
    for (const char *line = log, *end = log + length; line < end; line++) {
        size_t bytes = 0;
        while (line + bytes < end && line[bytes] != '\n' && line[bytes] != '\r')
            bytes++;
        for (unsigned i = 0; i < count && bytes > 0; i++)
            if (log_pattern_search(patterns[i], line, bytes, work_left, found, &reading, error) < 0)
                return error_wrap(error, "progress.logPatterns[%u]", i);
        end_line(&reading);
        line += bytes;
    }
    leave_out_undated(report);
    return 0;
}

int log_report_read(const char *const *expressions, unsigned count, const char *log, size_t length,
                    struct status_document *ret_report, int64_t *ret_work, struct error *error)
{
    int64_t work_left = LOG_WORK_MAX;
    struct log_pattern *patterns[LOG_PATTERNS_MAX];
    unsigned compiled = 0;
    int status = 0;
    status_document_init(ret_report);
    while (status == 0 && compiled < count && compiled < LOG_PATTERNS_MAX) {
        status = log_pattern_new(expressions[compiled], &patterns[compiled], error);
        compiled += status == 0;
    }
    if (status == 0)
        status = read_lines(patterns, compiled, log, length, ret_report, &work_left, error);
    for (unsigned i = 0; i < compiled; i++)
        log_pattern_free(patterns[i]);
    if (status < 0)
        status_document_init(ret_report);
    *ret_work = status < 0 ? LOG_WORK_MAX : LOG_WORK_MAX - work_left;
    return status;
}
