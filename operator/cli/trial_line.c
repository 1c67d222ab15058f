/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/trial_line.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/exit_code.h"
#include "common/contract/labels.h"
#include "common/job/enum_words.h"
#include "common/job/string_format.h"
#include "common/job/sweep_parameter.h"
#include "common/job/sweep_template.h"
#include "common/job/sweep_value.h"
#include "common/memory.h"
#include "operator/cli/job_condition.h"

static int64_t number_of(const char *text)
{
    char *end;
    long long number = strtoll(text, &end, 10);
    return end > text && *end == '\0' && number >= 0 && number < SWEEP_TRIALS_MAX ? number : -1;
}

static const struct json *metric_of(const struct json *job, const char *name)
{
    const struct json *metrics = json_at(job, "status.progress.metrics");
    for (const struct json *item = json_first(metrics); item; item = json_next(item))
        if (strcmp(json_string_at(item, "name", ""), name) == 0)
            return item;
    return NULL;
}

/* NULL: it is not finite. */
static const char *finite_value(const struct json *metric)
{
    const char *value = json_string_at(metric, "value", "");
    double number;
    return finite_number(value, &number) ? value : NULL;
}

static void read_objective(const struct training_sweep *sweep, const struct json *job, struct trial_line *line)
{
    const struct json *last = metric_of(job, sweep->objective.metric);
    line->reported_step = -1;
    if (line->succeeded)
        line->objective = arena_copy_string(&line->arena, finite_value(metric_of(job, sweep_final_metric(sweep))));
    else if (!line->failed && !line->diverged)
        line->reported = arena_copy_string(&line->arena, finite_value(last));
    if (line->reported)
        line->reported_step = json_integer_at(last, "step", json_integer_at(job, "status.progress.step", -1));
}

static int64_t time_at(const struct json *job, const char *path)
{
    int64_t ms = FIELD_UNSET;
    clock_parse(json_string_at(job, path, ""), &ms);
    return ms;
}

static int64_t suspended_since(const struct json *job)
{
    int64_t ms = FIELD_UNSET;
    clock_parse(json_string_at(job_condition(job, "Suspended"), "lastTransitionTime", ""), &ms);
    return ms;
}

/* Whether a parameter is tried in the trial, whose values of those before it are in the line. */
static bool is_tried(const struct training_sweep *sweep, unsigned parameter, const struct trial_line *line)
{
    int condition = sweep_condition_of(sweep, parameter);
    const char *text = condition < 0 ? NULL : line->values[condition];
    SCOPED_JSON *value = text ? sweep_parameter_value(&sweep->parameters[condition], text) : NULL;
    return sweep_applies(sweep, parameter, value);
}

static void read_values(const struct training_sweep *sweep, const struct json *spec, struct trial_line *line)
{
    line->values = arena_allocate(&line->arena, sweep->parameter_count, sizeof *line->values);
    line->value_count = sweep->parameter_count;
    for (unsigned i = 0; i < sweep->parameter_count; i++) {
        SCOPED_FREE char *text = sweep_parameter_find(&sweep->parameters[i], spec);
        line->values[i] = is_tried(sweep, i, line) ? arena_copy_string(&line->arena, text) : NULL;
    }
}

/* A job that reports no objective has succeeded, and its trial has not. */
static bool has_failed_by_result(const struct training_sweep *sweep, int64_t number)
{
    return number >= 0 && number < sweep->status.result_count && sweep->status.results[number].state == TRIAL_FAILED;
}

struct trial_line *trial_line_new(const struct training_sweep *sweep, const struct json *job)
{
    struct trial_line *line = memory_allocate(1, sizeof *line);
    struct arena *arena = &line->arena;
    const char *state = job_state(job);
    line->number = number_of(json_string(json_member(json_at(job, "metadata.labels"), LABEL_TRIAL), ""));
    line->has_job = true;
    line->name = arena_copy_string(arena, json_string_at(job, "metadata.name", ""));
    const struct json *failure = job_condition_true(job, "Failed") ? job_condition(job, "Failed") : NULL;
    line->succeeded = job_condition_true(job, "Succeeded");
    line->diverged = strcmp(json_string_at(failure, "reason", ""), REASON_DIVERGED) == 0;
    line->failed = failure && !line->diverged;
    line->message = arena_copy_string(arena, json_string_at(failure, "message", ""));
    read_objective(sweep, job, line);
    if (line->diverged)
        line->state = sweep_trial_state_words[TRIAL_DIVERGED];
    else if (line->succeeded && has_failed_by_result(sweep, line->number))
        line->state = sweep_trial_state_words[TRIAL_FAILED];
    else
        line->state = arena_copy_string(arena, *state ? state : "Pending");
    line->step = json_integer_at(job, "status.progress.step", -1);
    line->total_steps = json_integer_at(job, "status.progress.totalSteps", -1);
    line->seconds_left = json_integer_at(job, "status.progress.secondsRemaining", -1);
    line->start_ms = time_at(job, "status.startTime");
    line->end_ms = job_condition_true(job, "Suspended") ? suspended_since(job) : time_at(job, "status.completionTime");
    line->suspended_ms = json_integer_at(job, "status.controllerState.suspendedMilliseconds", 0);
    read_values(sweep, json_member(job, "spec"), line);
    return line;
}

/* Returns why the values of a trial make no valid job, to be freed with free(); NULL: they make one. */
static char *refusal_of_values(const struct training_sweep *sweep, unsigned number, const char *name)
{
    SCOPED_JSON *job = json_new_object();
    SCOPED(training_job_release) struct training_job parsed = {.name = NULL};
    struct error error = ERROR_INIT;
    int result = 0;
    json_set_string(json_set_object(job, "metadata"), "name", name);
    struct json *spec = json_set(job, "spec", json_copy(sweep->template));
    for (unsigned i = 0; i < sweep->parameter_count && result == 0; i++) {
        SCOPED_JSON *value = sweep_trial_value(sweep, i, number);
        result = value ? sweep_parameter_put(&sweep->parameters[i], value, spec, &error) : 0;
    }
    if (result == 0)
        result = training_job_parse(job, &parsed, &error);
    return result < 0 ? memory_copy_string(error.message) : NULL;
}

struct trial_line *trial_line_of_result(const struct training_sweep *sweep, unsigned number)
{
    const struct trial_record *result = &sweep->status.results[number];
    struct trial_line *line = memory_allocate(1, sizeof *line);
    struct arena *arena = &line->arena;
    SCOPED_FREE char *name = memory_format("%s-%u", sweep->name, number);
    line->number = number;
    line->name = arena_copy_string(arena, name);
    line->state = sweep_trial_state_words[result->state];
    SCOPED_FREE char *refusal = result->state == TRIAL_FAILED ? refusal_of_values(sweep, number, name) : NULL;
    line->message = refusal ? arena_copy_string(arena, refusal) : "";
    line->objective = arena_copy_string(arena, result->objective);
    line->succeeded = result->state == TRIAL_SUCCEEDED;
    line->failed = result->state == TRIAL_FAILED;
    line->diverged = result->state == TRIAL_DIVERGED;
    line->stopped = result->state == TRIAL_STOPPED;
    line->paused = result->state == TRIAL_PAUSED;
    line->step = (line->stopped || line->paused) && result->step != FIELD_UNSET ? result->step : -1;
    line->total_steps = line->seconds_left = line->reported_step = -1;
    line->start_ms = line->end_ms = FIELD_UNSET;
    line->values = arena_allocate(arena, sweep->parameter_count, sizeof *line->values);
    line->value_count = sweep->parameter_count;
    for (unsigned i = 0; i < sweep->parameter_count; i++) {
        SCOPED_JSON *value = sweep_trial_value(sweep, i, number);
        SCOPED_FREE char *text = json_scalar_text(value);
        line->values[i] = arena_copy_string(arena, text);
    }
    return line;
}

void trial_line_free(struct trial_line *line)
{
    arena_release(&line->arena);
    free(line);
}

const char *trial_line_value(const struct trial_line *line)
{
    return line->objective ? line->objective : line->reported;
}

int64_t trial_line_value_step(const struct trial_line *line)
{
    return line->stopped || line->paused ? line->step : line->reported_step;
}

bool trial_line_is_over(const struct trial_line *line)
{
    return line->succeeded || line->failed || line->diverged || line->stopped;
}
