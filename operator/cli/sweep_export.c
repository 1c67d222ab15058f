/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/sweep_export.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/data/csv.h"
#include "common/job/sweep_parameter.h"

#define SECONDS_MAX 32
#define COUNT_MAX 24

/* -1: unknown. Conditions have whole seconds, as has all that an operator of an earlier release writes; a short trial has none. */
static double seconds_of(const struct trial_line *line)
{
    if (line->start_ms == FIELD_UNSET || line->end_ms == FIELD_UNSET)
        return -1;
    int64_t taken_ms = line->end_ms - line->start_ms - line->suspended_ms;
    return taken_ms > 0 ? (double)taken_ms / 1000 : -1;
}

/* Of a trial that is not over the step of its value, if it has one. */
static int64_t step_of(const struct trial_line *line)
{
    return line->reported ? line->reported_step : line->step;
}

/* ---------------------------------------------------------------- CSV */

static int put_head(const struct training_sweep *sweep, struct buffer *out, struct error *error)
{
    if (buffer_append_string(out, "trial,name,state,", error) < 0)
        return -1;
    for (unsigned i = 0; i < sweep->parameter_count; i++)
        if (csv_append_cell(out, sweep_parameter_name(&sweep->parameters[i]), ",", error) < 0)
            return -1;
    return buffer_append_string(
        out, sweep_has_parents(sweep) ? "objective,step,seconds,best,parent\n" : "objective,step,seconds,best\n",
        error);
}

/* -1: leaves the cell empty. */
static int put_count(int64_t count, const char *after, struct buffer *out, struct error *error)
{
    char text[COUNT_MAX] = "";
    if (count >= 0)
        snprintf(text, sizeof text, "%" PRId64, count);
    return csv_append_cell(out, text, after, error);
}

static int put_line(const struct sweep_view *view, const struct trial_line *line, struct buffer *out,
                    struct error *error)
{
    char seconds[SECONDS_MAX] = "";
    if (seconds_of(line) >= 0)
        snprintf(seconds, sizeof seconds, "%.3f", seconds_of(line));
    if (put_count(line->number, ",", out, error) < 0 || csv_append_cell(out, line->name, ",", error) < 0 ||
        csv_append_cell(out, line->state, ",", error) < 0)
        return -1;
    for (unsigned i = 0; i < line->value_count; i++)
        if (csv_append_cell(out, line->values[i] ? line->values[i] : "", ",", error) < 0)
            return -1;
    const char *value = trial_line_value(line);
    if (csv_append_cell(out, value ? value : "", ",", error) < 0 || put_count(step_of(line), ",", out, error) < 0 ||
        csv_append_cell(out, seconds, ",", error) < 0)
        return -1;
    const char *is_best = sweep_view_is_best(view, line) ? "true" : "false";
    if (!sweep_has_parents(view->sweep))
        return csv_append_cell(out, is_best, "\n", error);
    if (csv_append_cell(out, is_best, ",", error) < 0)
        return -1;
    return put_count(sweep_view_parent(view, line), "\n", out, error);
}

int sweep_export_csv(const struct sweep_view *view, struct buffer *out, struct error *error)
{
    if (put_head(view->sweep, out, error) < 0)
        return -1;
    for (size_t i = 0; i < view->count; i++)
        if (put_line(view, view->trials[i], out, error) < 0)
            return -1;
    return 0;
}

/* ---------------------------------------------------------------- JSON */

static struct json *value_of(const struct sweep_parameter *parameter, const char *text)
{
    struct json *value = text && !parameter->env && !parameter->arg ? sweep_parameter_value(parameter, text) : NULL;
    return value ? value : text ? json_new_string(text) : json_new_null();
}

static struct json *trial_of(const struct sweep_view *view, const struct trial_line *line)
{
    struct json *trial = json_new_object();
    double seconds = seconds_of(line);
    json_set_integer(trial, "trial", line->number);
    json_set_string(trial, "name", line->name);
    json_set_string(trial, "state", line->state);
    struct json *parameters = json_set_object(trial, "parameters");
    for (unsigned i = 0; i < line->value_count; i++) {
        const struct sweep_parameter *parameter = &view->sweep->parameters[i];
        json_set(parameters, sweep_parameter_name(parameter), value_of(parameter, line->values[i]));
    }
    const char *objective = trial_line_value(line);
    json_set(trial, "objective", objective ? json_new_number(strtod(objective, NULL)) : json_new_null());
    json_set(trial, "step", step_of(line) >= 0 ? json_new_integer(step_of(line)) : json_new_null());
    json_set(trial, "seconds", seconds >= 0 ? json_new_number(seconds) : json_new_null());
    json_set_boolean(trial, "best", sweep_view_is_best(view, line));
    int64_t parent = sweep_view_parent(view, line);
    if (sweep_has_parents(view->sweep))
        json_set(trial, "parent", parent >= 0 ? json_new_integer(parent) : json_new_null());
    return trial;
}

int sweep_export_json(const struct sweep_view *view, struct buffer *out, struct error *error)
{
    SCOPED_JSON *list = json_new_array();
    for (size_t i = 0; i < view->count; i++)
        json_append(list, trial_of(view, view->trials[i]));
    return json_print_indented(list, out, error) < 0 ? -1 : buffer_append_byte(out, '\n', error);
}
