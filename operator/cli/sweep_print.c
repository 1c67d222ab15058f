/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/sweep_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/job/enum_words.h"
#include "common/job/sweep_parameter.h"
#include "common/job/sweep_value.h"
#include "operator/cli/job_condition.h"
#include "operator/cli/job_table.h"
#include "operator/cli/text_table.h"
#include "operator/cli/view_print.h"

#define WHY_FAILURES_MAX 10
#define BAR_WIDTH_MAX 40
#define TRIALS_SHOWN_MAX 8

/* ---------------------------------------------------------------- progress */

static void print_left(const struct sweep_view *view, int64_t now_ms, struct buffer *out)
{
    char text[24];
    int64_t left_ms = sweep_view_left_ms(view, now_ms);
    if (left_ms < 0)
        return;
    clock_format_duration(left_ms, text, sizeof text);
    buffer_format(out, "  about %s left", text);
}

static void print_counts(const struct sweep_view *view, struct buffer *out)
{
    const struct training_sweep *sweep = view->sweep;
    buffer_format(out, "%" PRId64 "/%" PRId64 " done", sweep_done(sweep), sweep->status.trials.total);
    if (!sweep_is_over(sweep) && !sweep->suspend && !view->interrupted)
        buffer_format(out, ", %" PRId64 " running", sweep->status.trials.running);
    if (sweep->status.trials.failed > 0)
        buffer_format(out, ", %" PRId64 " failed", sweep->status.trials.failed);
    if (sweep->status.trials.diverged > 0)
        buffer_format(out, ", %" PRId64 " diverged", sweep->status.trials.diverged);
    if (sweep->status.trials.stopped > 0)
        buffer_format(out, ", %" PRId64 " stopped early", sweep->status.trials.stopped);
    if (sweep->status.trials.paused > 0)
        buffer_format(out, ", %" PRId64 " paused", sweep->status.trials.paused);
}

static void print_values(const struct training_sweep *sweep, const struct trial_line *line, struct buffer *out)
{
    const char *before = "";
    for (unsigned i = 0; i < line->value_count && i < sweep->parameter_count; i++) {
        if (!line->values[i])
            continue;
        buffer_format(out, "%s%s %s", before, sweep_parameter_label(sweep, i), line->values[i]);
        before = ", ";
    }
}

void sweep_print_line(const struct sweep_view *view, int64_t now_ms, struct buffer *out)
{
    const struct sweep_best *best = &view->sweep->status.best;
    buffer_append_string(out, "trials ", NULL);
    print_counts(view, out);
    const struct trial_line *leader = sweep_view_leader(view);
    if (leader)
        buffer_format(out, "  best %s %s (%s after step %" PRId64 ")", view->sweep->objective.metric,
                      trial_line_value(leader), leader->name, trial_line_value_step(leader));
    else if (best->trial)
        buffer_format(out, "  best %s %s", view->sweep->objective.metric, best->objective);
    print_left(view, now_ms, out);
}

void sweep_print_end(const struct training_sweep *sweep, const struct trial_line *line, struct buffer *out)
{
    if (line->failed || line->diverged)
        buffer_format(out, "%s %s: %s; with ", line->name, line->failed ? "failed" : "diverged",
                      *line->message ? line->message : "the reason was in its job, which has been deleted");
    else if (line->stopped || line->paused)
        buffer_format(out, "%s %s: %s %s after step %" PRId64 " with ", line->name,
                      line->stopped ? "was stopped early" : "pauses", sweep->objective.metric,
                      line->objective ? line->objective : "unknown", line->step);
    else if (line->objective)
        buffer_format(out, "%s: %s %s with ", line->name, sweep->objective.metric, line->objective);
    else
        buffer_format(out, "%s succeeded, but reports no %s; with ", line->name, sweep->objective.metric);
    print_values(sweep, line, out);
    buffer_append_byte(out, '\n', NULL);
}

static bool used_its_budget(const struct training_sweep *sweep)
{
    const char *reason = sweep->status.conditions[SWEEP_COMPLETE].reason;
    return sweep->has_budget && reason && strcmp(reason, "BudgetUsed") == 0;
}

/* How the trials of a complete sweep ended. */
static void print_ends(const struct training_sweep *sweep, struct buffer *out)
{
    buffer_format(out, "%" PRId64 " of %" PRId64 " trials succeeded", sweep->status.trials.succeeded,
                  sweep->status.trials.total);
    if (sweep->status.trials.failed > 0)
        buffer_format(out, ", %" PRId64 " failed", sweep->status.trials.failed);
    if (sweep->status.trials.diverged > 0)
        buffer_format(out, ", %" PRId64 " diverged", sweep->status.trials.diverged);
    if (sweep->status.trials.stopped > 0)
        buffer_format(out, ", %" PRId64 " were stopped early", sweep->status.trials.stopped);
    if (sweep->status.trials.paused > 0)
        buffer_format(out, ", %" PRId64 " stay paused", sweep->status.trials.paused);
    if (used_its_budget(sweep))
        buffer_format(out, "; the budget of %g worker-hours is used, so no more trials began",
                      sweep->budget.worker_hours);
    buffer_append_byte(out, '\n', NULL);
}

/* Tells trials that run from those that have not started, for want of quota or room for instance. The sweep's status counts both. */
static void print_trials_awaited(const struct sweep_view *view, struct buffer *out)
{
    const struct trial_line *first = NULL;
    unsigned running = 0, waiting = 0;
    for (size_t i = 0; i < view->count; i++) {
        const struct trial_line *line = view->trials[i];
        bool runs = strcmp(line->state, "Running") == 0;
        if (trial_line_is_over(line) || line->paused)
            continue;
        first = runs || first ? first : line;
        running += runs;
        waiting += !runs;
    }
    buffer_format(out, "%s waits for its trials: %u run, and %" PRId64 " of %" PRId64 " are over\n", view->sweep->name,
                  running, sweep_done(view->sweep), view->sweep->status.trials.total);
    if (waiting > 0)
        buffer_format(out, "%u more %s to start; cox why %s says for what the first of them waits\n", waiting,
                      waiting == 1 ? "waits" : "wait", first->name);
}

static void print_wait(const struct sweep_view *view, struct buffer *out)
{
    const struct training_sweep *sweep = view->sweep;
    const struct condition *conditions = sweep->status.conditions;
    const struct condition *failed = &conditions[SWEEP_FAILED], *running = &conditions[SWEEP_RUNNING];
    if (failed->status == CONDITION_TRUE)
        buffer_format(out, "%s waits for nothing: it has failed: %s\n", sweep->name, failed->message);
    else if (conditions[SWEEP_COMPLETE].status == CONDITION_TRUE) {
        buffer_format(out, "%s waits for nothing: it is complete, and ", sweep->name);
        print_ends(sweep, out);
    } else if (view->interrupted)
        buffer_format(out, "%s waits for a user to run it again: its run was %s%s%s\n", sweep->name,
                      sweep->suspend ? "suspended" : "interrupted", view->again ? ", and goes on with: " : "",
                      view->again ? view->again : "");
    else if (sweep->suspend)
        buffer_format(out, "%s waits for a user to resume it: it is suspended (cox sweep resume %s)\n", sweep->name,
                      sweep->name);
    else if (running->status == CONDITION_FALSE && running->message && *running->message)
        buffer_format(out, "%s waits: %s\n", sweep->name, running->message);
    else if (running->status != CONDITION_TRUE)
        buffer_format(out, "%s waits for the operator to start its trials\n", sweep->name);
    else
        print_trials_awaited(view, out);
}

/* Returns whether the trial failed or diverged. A sweep counts trials that report no finite objective as failed. */
static bool is_to_explain(const struct trial_line *line)
{
    return line->failed || line->diverged || (line->succeeded && !line->objective);
}

void sweep_print_why(const struct sweep_view *view, struct buffer *out)
{
    size_t failed = 0;
    print_wait(view, out);
    for (size_t i = 0; i < view->count; i++)
        if (is_to_explain(view->trials[i]) && failed++ < WHY_FAILURES_MAX)
            sweep_print_end(view->sweep, view->trials[i], out);
    if (failed > WHY_FAILURES_MAX)
        buffer_format(out, "%zu more trials failed or diverged; `cox why` of each says why\n",
                      failed - WHY_FAILURES_MAX);
}

/* ---------------------------------------------------------------- the block */

static void print_bar(const struct sweep_view *view, int64_t now_ms, unsigned width, struct buffer *out)
{
    unsigned bar = width / 2 < BAR_WIDTH_MAX ? width / 2 : BAR_WIDTH_MAX;
    int64_t total = view->sweep->status.trials.total;
    unsigned full = total > 0 ? (unsigned)(sweep_done(view->sweep) * bar / total) : 0;
    for (unsigned i = 0; i < bar; i++)
        buffer_append_string(out, i < full ? "█" : "░", NULL);
    buffer_append_string(out, "  ", NULL);
    print_counts(view, out);
    print_left(view, now_ms, out);
    buffer_append_byte(out, '\n', NULL);
}

/* The best trial lacks the parameters that it did not try, so that its values are not in the places of the spec's. */
static const char *label_of(const struct training_sweep *sweep, const char *name)
{
    for (unsigned i = 0; i < sweep->parameter_count; i++)
        if (strcmp(sweep_parameter_name(&sweep->parameters[i]), name) == 0)
            return sweep_parameter_label(sweep, i);
    return name;
}

static void print_best(const struct sweep_view *view, struct buffer *out)
{
    const struct sweep_best *best = &view->sweep->status.best;
    const struct trial_line *leader = sweep_view_leader(view);
    if (leader) {
        buffer_format(out, "best  %s: %s %s after step %" PRId64 " with ", leader->name, view->sweep->objective.metric,
                      trial_line_value(leader), trial_line_value_step(leader));
        print_values(view->sweep, leader, out);
        buffer_append_byte(out, '\n', NULL);
    }
    if (leader || !best->trial)
        return;
    buffer_format(out, "best  %s: %s %s with ", best->trial, view->sweep->objective.metric, best->objective);
    for (unsigned i = 0; i < best->parameter_count; i++)
        buffer_format(out, "%s%s %s", i > 0 ? ", " : "", label_of(view->sweep, best->parameters[i].name),
                      best->parameters[i].value);
    buffer_append_byte(out, '\n', NULL);
}

static void print_trial(const struct training_sweep *sweep, const struct trial_line *line, struct buffer *out)
{
    buffer_format(out, "trial %" PRId64 "  %-10s", line->number, line->state);
    if (line->step >= 0 && line->total_steps > 0)
        buffer_format(out, " %3" PRId64 " %%", 100 * line->step / line->total_steps);
    else
        buffer_append_string(out, "      ", NULL);
    buffer_append_string(out, "  ", NULL);
    print_values(sweep, line, out);
    buffer_append_byte(out, '\n', NULL);
}

static void print_trials(const struct sweep_view *view, struct buffer *out)
{
    unsigned shown = 0, more = 0;
    for (size_t i = 0; i < view->count && !sweep_is_over(view->sweep); i++) {
        if (trial_line_is_over(view->trials[i]) || view->trials[i]->paused)
            continue;
        if (shown == TRIALS_SHOWN_MAX) {
            more++;
        } else {
            print_trial(view->sweep, view->trials[i], out);
            shown++;
        }
    }
    if (more > 0)
        buffer_format(out, "and %u more trials\n", more);
}

void sweep_print_block(const struct sweep_view *view, int64_t now_ms, unsigned width, struct buffer *out)
{
    const struct training_sweep *sweep = view->sweep;
    SCOPED_BUFFER lines = BUFFER_INIT(VIEW_PRINT_MAX);
    buffer_format(&lines, "%s  %s, %" PRId64 " trial%s at a time  %s\n", sweep->name,
                  sweep_algorithm_words[sweep->algorithm.type], sweep->parallelism, sweep->parallelism == 1 ? "" : "s",
                  !view->interrupted ? sweep_state(sweep)
                  : sweep->suspend   ? sweep_condition_words[SWEEP_SUSPENDED]
                                     : JOB_INTERRUPTED);
    print_bar(view, now_ms, width, &lines);
    print_best(view, &lines);
    print_trials(view, &lines);
    view_print_clipped(buffer_text(&lines), width, out);
}

/* ---------------------------------------------------------------- tables */

/* -1: leaves the cell empty. */
static void add_number(struct text_table *table, int64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, number);
    text_table_add(table, number >= 0 ? text : NULL);
}

static bool has_early_steps(const struct sweep_view *view)
{
    for (size_t i = 0; i < view->count; i++)
        if (trial_line_value_step(view->trials[i]) >= 0)
            return true;
    return false;
}

static void add_trial(const struct sweep_view *view, const struct trial_line *line, bool has_steps,
                      struct text_table *table)
{
    add_number(table, line->number);
    text_table_add(table, line->state);
    for (unsigned i = 0; i < view->sweep->parameter_count; i++)
        text_table_add(table, i < line->value_count ? line->values[i] : NULL);
    text_table_add(table, trial_line_value(line));
    if (has_steps)
        add_number(table, trial_line_value_step(line));
    if (sweep_has_parents(view->sweep))
        add_number(table, sweep_view_parent(view, line));
    text_table_add(table, sweep_view_is_best(view, line) ? "best" : NULL);
}

void sweep_print_table(const struct sweep_view *view, struct buffer *out)
{
    const struct training_sweep *sweep = view->sweep;
    SCOPED(text_table_release) struct text_table table;
    bool has_parents = sweep_has_parents(sweep), has_steps = has_early_steps(view);
    text_table_init(&table, sweep->parameter_count + 4 + has_parents + has_steps);
    text_table_add(&table, "TRIAL");
    text_table_add(&table, "STATE");
    for (unsigned i = 0; i < sweep->parameter_count; i++)
        text_table_add(&table, sweep_parameter_label(sweep, i));
    text_table_add(&table, sweep->objective.metric);
    if (has_steps)
        text_table_add(&table, "STEP");
    if (has_parents)
        text_table_add(&table, "FROM");
    text_table_add(&table, NULL);
    for (size_t i = 0; i < view->count; i++)
        add_trial(view, view->trials[i], has_steps, &table);
    text_table_print(&table, out);
}

static void set_count(struct json *row, const char *title, const struct json *object, const char *path)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, json_integer_at(object, path, 0));
    json_set_string(row, title, text);
}

struct json *sweep_row(const struct json *object, int64_t now_ms)
{
    struct json *row = json_new_object();
    const char *state = job_state(object);
    char age[24];
    object_age(object, now_ms, age, sizeof age);
    json_set_string(row, "NAMESPACE", json_string_at(object, "metadata.namespace", ""));
    json_set_string(row, "NAME", json_string_at(object, "metadata.name", ""));
    json_set_string(row, "STATE", *state ? state : "Pending");
    set_count(row, "TRIALS", object, "status.trials.total");
    set_count(row, "RUNNING", object, "status.trials.running");
    set_count(row, "SUCCEEDED", object, "status.trials.succeeded");
    set_count(row, "FAILED", object, "status.trials.failed");
    json_set_string(row, "BEST", json_string_at(object, "status.best.trial", ""));
    json_set_string(row, "OBJECTIVE", json_string_at(object, "status.best.objective", ""));
    json_set_string(row, "AGE", age);
    return row;
}

void sweep_print_list(const struct json *sweeps, bool with_namespace, int64_t now_ms, struct buffer *out)
{
    SCOPED_JSON *titles = sweep_row(NULL, now_ms);
    SCOPED(text_table_release) struct text_table table;
    if (!with_namespace)
        json_remove(titles, "NAMESPACE");
    text_table_init(&table, (unsigned)json_count(titles));
    for (const struct json *title = json_first(titles); title; title = json_next(title))
        text_table_add(&table, json_key(title));
    for (const struct json *item = json_first(sweeps); item; item = json_next(item)) {
        SCOPED_JSON *row = sweep_row(item, now_ms);
        for (const struct json *title = json_first(titles); title; title = json_next(title))
            text_table_add(&table, json_string(json_member(row, json_key(title)), ""));
    }
    text_table_print(&table, out);
}

/* ---------------------------------------------------------------- the result */

void sweep_print_result(const struct training_sweep *sweep, struct buffer *out)
{
    const struct sweep_best *best = &sweep->status.best;
    const struct condition *failed = &sweep->status.conditions[SWEEP_FAILED];
    unsigned width = 0;
    if (failed->status == CONDITION_TRUE)
        buffer_format(out, "%s has failed: %s\n", sweep->name, failed->message);
    else {
        buffer_format(out, "%s is complete: ", sweep->name);
        print_ends(sweep, out);
    }
    if (sweep_is_exhausted(sweep))
        buffer_format(
            out, "  The parameters have no other combination of values, so it ended before maxTrials %" PRId64 ".\n",
            sweep->max_trials);
    if (!best->trial)
        return;
    buffer_format(out, "  best         %s: %s %s\n", best->trial, sweep->objective.metric, best->objective);
    for (unsigned i = 0; i < best->parameter_count; i++)
        width = strlen(best->parameters[i].name) > width ? (unsigned)strlen(best->parameters[i].name) : width;
    for (unsigned i = 0; i < best->parameter_count; i++)
        buffer_format(out, "               %-*s  %s\n", (int)width, best->parameters[i].name,
                      best->parameters[i].value);
    if (sweep->status.trials.paused > 0)
        buffer_format(out, "  The %s of paused trials was measured after fewer steps, so none of them is the best.\n",
                      sweep->objective.metric);
}
