/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/push_report.h"

#include <math.h>
#include <string.h>

#include "common/job/enum_words.h"
#include "common/job/string_format.h"
#include "common/json.h"
#include "common/utf8.h"

#define NAME_SHOWN 20 /* bytes of a name that is too long */

static const char *const step_names[] = {"step", "current_step", "global_step", NULL};
static const char *const total_names[] = {"totalSteps", "total_steps", NULL};
static const char *const epoch_names[] = {"epoch", "current_epoch", NULL};

static int wrong(const struct json *value, const char *name, const char *wanted, struct error *error)
{
    return error_set(error, ERROR_INVALID, "%s is of type %s; write %s", name, json_type_name(json_type(value)),
                     wanted);
}

static bool is_given(const struct json *value)
{
    return json_type(value) != JSON_ABSENT && json_type(value) != JSON_NULL;
}

static int read_number(const struct json *object, const char *name, double highest, int64_t *number,
                       struct error *error)
{
    const struct json *value = json_member(object, name);
    double given = json_number(value, NAN);
    if (!is_given(value))
        return 0;
    if (!isfinite(given))
        return wrong(value, name, "a number", error);
    if (given < 0 || given > highest)
        return error_set(error, ERROR_INVALID, "%s is %.6g; it must be from 0 to %.0f", name, given, highest);
    *number = (int64_t)given;
    return 0;
}

/* The first flaw is told in words. */
static struct error *flaw(struct error *first)
{
    return first->kind == ERROR_NONE ? first : NULL;
}

static void take_metric(const char *name, double value, struct status_document *report, struct error *ret_flaw)
{
    size_t length = strlen(name);
    if (words_find(step_names, name) >= 0)
        status_count_set(&report->step, value);
    else if (words_find(total_names, name) >= 0)
        status_count_set(&report->total_steps, value);
    else if (words_find(epoch_names, name) >= 0)
        status_count_set(&report->data_epoch, value);
    else if (length == 0)
        error_set(flaw(ret_flaw), ERROR_INVALID, "a metric with an empty name was left out");
    else if (status_name_has_control_character(name))
        error_set(flaw(ret_flaw), ERROR_INVALID, "a metric with a control character in its name was left out");
    else if (length >= STATUS_METRIC_NAME_MAX)
        error_set(flaw(ret_flaw), ERROR_INVALID, "the metric %.*s… was left out: its name has %zu bytes, more than %d",
                  (int)utf8_fit(name, NAME_SHOWN), name, length, STATUS_METRIC_NAME_MAX - 1);
    else if (!status_document_set_metric(report, name, value, 0))
        error_set(flaw(ret_flaw), ERROR_INVALID, "the metric %s was left out: a report has at most %d", name,
                  STATUS_METRICS_MAX);
}

static bool metric_value(const struct json *value, double *ret_value)
{
    if (json_type(value) == JSON_STRING)
        return finite_number(json_string(value, ""), ret_value);
    *ret_value = json_number(value, NAN);
    return isfinite(*ret_value);
}

static int read_metric(const struct json *item, struct status_document *report, struct error *ret_flaw,
                       struct error *error)
{
    const struct json *name = json_member(item, "name"), *value = json_member(item, "value");
    double number;
    if (json_type(item) != JSON_OBJECT)
        return wrong(item, "an element of metrics", "{\"name\": \"loss\", \"value\": \"0.31\"}", error);
    if (json_type(name) != JSON_STRING)
        return wrong(name, "the name of a metric", "a string", error);
    if (json_type(value) != JSON_STRING && json_type(value) != JSON_NUMBER)
        return wrong(value, "the value of a metric", "a number, or one in a string", error);
    if (metric_value(value, &number))
        take_metric(json_string(name, ""), number, report, ret_flaw);
    else
        error_set(flaw(ret_flaw), ERROR_INVALID, "the metric %.*s was left out: its value is not a finite number",
                  (int)utf8_fit(json_string(name, ""), NAME_SHOWN), json_string(name, ""));
    return 0;
}

static int read_metrics(const struct json *metrics, struct status_document *report, struct error *ret_flaw,
                        struct error *error)
{
    if (is_given(metrics) && json_type(metrics) != JSON_ARRAY)
        return wrong(metrics, "metrics", "a list such as [{\"name\": \"loss\", \"value\": \"0.31\"}]", error);
    for (const struct json *item = json_first(metrics); item; item = json_next(item))
        if (read_metric(item, report, ret_flaw, error) < 0)
            return -1;
    for (unsigned i = 0; i < report->metric_count; i++)
        report->metrics[i].step = report->step > 0 ? report->step : 0;
    return 0;
}

static int read_status(const struct json *status, struct status_document *report, struct error *ret_flaw,
                       struct error *error)
{
    if (is_given(status) && json_type(status) != JSON_OBJECT)
        return wrong(status, "trainerStatus", "an object", error);
    if (read_number(status, "progressPercentage", 100, &report->percent, error) < 0 ||
        read_number(status, "estimatedRemainingSeconds", STATUS_COUNT_MAX, &report->seconds_remaining, error) < 0)
        return -1;
    return read_metrics(json_member(status, "metrics"), report, ret_flaw, error);
}

int push_report_read(const char *text, size_t length, struct status_document *ret_report, struct error *ret_flaw,
                     struct error *error)
{
    SCOPED_JSON *object = NULL;
    struct status_document report;
    struct error first = ERROR_INIT;
    status_document_init(&report);
    if (length > PUSH_REPORT_MAX)
        return error_set(error, ERROR_TOO_LARGE, "the report has %zu bytes; send at most %d", length, PUSH_REPORT_MAX);
    if (json_parse(text, length, PUSH_REPORT_MAX, &object, error) < 0)
        return error_wrap(error, "the report is not JSON");
    if (json_type(object) != JSON_OBJECT)
        return wrong(object, "the report", "{\"trainerStatus\": {…}}", error);
    if (read_status(json_member(object, "trainerStatus"), &report, &first, error) < 0)
        return -1;
    *ret_report = report;
    *ret_flaw = first;
    return 0;
}
