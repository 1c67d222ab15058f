/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/sweep_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/job/enum_words.h"
#include "common/job/sweep_parameter.h"
#include "common/memory.h"

#define FIRST_CAPACITY 16

/* ---------------------------------------------------------------- the trials */

void sweep_view_add(struct sweep_view *view, const struct trial_line *line)
{
    if (view->count == view->capacity) {
        view->capacity = view->capacity ? 2 * view->capacity : FIRST_CAPACITY;
        view->trials = memory_resize(view->trials, view->capacity, sizeof *view->trials);
    }
    view->trials[view->count++] = line;
}

static int compare(const void *left, const void *right)
{
    const struct trial_line *a = *(const struct trial_line *const *)left, *b = *(const struct trial_line *const *)right;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* Only the job knows when the trial began and since when it is suspended. */
static void take_times(struct trial_line *line, const struct trial_line *job)
{
    line->has_job = job != NULL;
    if (!job)
        return;
    line->start_ms = job->start_ms;
    line->end_ms = job->end_ms;
    line->suspended_ms = job->suspended_ms;
}

/* Adds a line for each trial that is over or paused and has none. `jobs`: the line of each trial's job; NULL: it has none. */
static void add_result_lines(struct sweep_view *view, const struct trial_line *const *lines,
                             const struct trial_line *const *jobs)
{
    const struct sweep_status *status = &view->sweep->status;
    view->own = memory_allocate(status->result_count + 1, sizeof *view->own);
    for (unsigned i = 0; i < status->result_count; i++) {
        if (lines[i] || status->results[i].state == TRIAL_RUNNING)
            continue;
        struct trial_line *line = trial_line_of_result(view->sweep, i);
        take_times(line, jobs[i]);
        view->own[view->own_count++] = line;
        sweep_view_add(view, line);
    }
}

/* The job of a trial that was stopped early or is paused knows only that it is suspended. */
static bool is_held_back(const struct sweep_status *status, int64_t number)
{
    if (number < 0 || number >= status->result_count)
        return false;
    return status->results[number].state == TRIAL_STOPPED || status->results[number].state == TRIAL_PAUSED;
}

static void drop_held_back(struct sweep_view *view)
{
    size_t kept = 0;
    for (size_t i = 0; i < view->count; i++)
        if (!is_held_back(&view->sweep->status, view->trials[i]->number))
            view->trials[kept++] = view->trials[i];
    view->count = kept;
}

/* Gets the line that the view has for each of the results. */
static void find_lines(const struct sweep_view *view, const struct trial_line **ret_lines)
{
    for (size_t i = 0; i < view->count; i++)
        if (view->trials[i]->number >= 0 && view->trials[i]->number < view->sweep->status.result_count)
            ret_lines[view->trials[i]->number] = view->trials[i];
}

void sweep_view_complete(struct sweep_view *view)
{
    unsigned results = view->sweep->status.result_count;
    SCOPED_FREE const struct trial_line **lines = memory_allocate(results + 1, sizeof *lines);
    SCOPED_FREE const struct trial_line **jobs = memory_allocate(results + 1, sizeof *jobs);
    find_lines(view, jobs);
    drop_held_back(view);
    find_lines(view, lines);
    add_result_lines(view, lines, jobs);
    if (view->count > 0)
        qsort(view->trials, view->count, sizeof *view->trials, compare);
}

void sweep_view_release(struct sweep_view *view)
{
    for (size_t i = 0; i < view->own_count; i++)
        trial_line_free(view->own[i]);
    free(view->own);
    free(view->trials);
    *view = (struct sweep_view){.sweep = NULL};
}

bool sweep_view_is_best(const struct sweep_view *view, const struct trial_line *line)
{
    const char *best = view->sweep->status.best.trial;
    return best && strcmp(best, line->name) == 0;
}

const struct trial_line *sweep_view_leader(const struct sweep_view *view)
{
    const char *succeeded = view->sweep->status.best.objective;
    double best = succeeded ? strtod(succeeded, NULL) : NAN;
    const struct trial_line *leader = NULL;
    bool maximize = view->sweep->objective.goal == GOAL_MAXIMIZE;
    for (size_t i = 0; i < view->count && !sweep_is_over(view->sweep); i++) {
        const char *text = view->trials[i]->succeeded ? NULL : trial_line_value(view->trials[i]);
        double value = text ? strtod(text, NULL) : NAN;
        if (isnan(value) || trial_line_value_step(view->trials[i]) < 0 ||
            !(isnan(best) || (maximize ? value > best : value < best)))
            continue;
        best = value;
        leader = view->trials[i];
    }
    return leader;
}

bool sweep_has_parents(const struct training_sweep *sweep)
{
    return sweep->algorithm.type == SWEEP_PBT;
}

int64_t sweep_view_parent(const struct sweep_view *view, const struct trial_line *line)
{
    const struct sweep_status *status = &view->sweep->status;
    int64_t parent = line->number < status->result_count ? status->results[line->number].parent : FIELD_UNSET;
    return parent == FIELD_UNSET ? -1 : parent;
}

/* ---------------------------------------------------------------- the sweep */

static bool holds(const struct training_sweep *sweep, enum sweep_condition type)
{
    return sweep->status.conditions[type].status == CONDITION_TRUE;
}

const char *sweep_state(const struct training_sweep *sweep)
{
    for (int type = 0; type < SWEEP_CONDITION_COUNT; type++)
        if (holds(sweep, (enum sweep_condition)type))
            return sweep_condition_words[type];
    return "Pending";
}

bool sweep_is_over(const struct training_sweep *sweep)
{
    return holds(sweep, SWEEP_COMPLETE) || holds(sweep, SWEEP_FAILED);
}

int64_t sweep_done(const struct training_sweep *sweep)
{
    const struct sweep_status *status = &sweep->status;
    int64_t ended = status->trials.succeeded + status->trials.failed + status->trials.diverged + status->trials.stopped;
    return sweep_is_over(sweep) && status->trials.paused > 0 ? ended + status->trials.paused : ended;
}

static const char *last_part(const struct sweep_parameter *parameter)
{
    const char *name = sweep_parameter_name(parameter), *dot = strrchr(name, '.');
    return parameter->env || parameter->arg || !dot ? name : dot + 1;
}

const char *sweep_parameter_label(const struct training_sweep *sweep, unsigned parameter)
{
    const char *label = last_part(&sweep->parameters[parameter]);
    for (unsigned i = 0; i < sweep->parameter_count; i++)
        if (i != parameter && strcmp(last_part(&sweep->parameters[i]), label) == 0)
            return sweep_parameter_name(&sweep->parameters[parameter]);
    return label;
}

/* ---------------------------------------------------------------- time left */

/* How long a trial takes from its start to its end: as long as it took, or expects to take in all; NAN: unknown. Its first steps are slow,
 * so that a trial that runs counts after a tenth of its steps. */
static double whole_ms(const struct trial_line *line, bool succeeded, int64_t now_ms)
{
    bool is_cut = line->failed || line->diverged || line->stopped || line->paused;
    if (line->succeeded != succeeded || is_cut || line->start_ms == FIELD_UNSET)
        return NAN;
    if (succeeded)
        return line->end_ms == FIELD_UNSET ? NAN : (double)(line->end_ms - line->start_ms - line->suspended_ms);
    bool is_known = line->seconds_left >= 0 && line->total_steps > 0 && line->step >= line->total_steps / 10;
    return is_known ? (double)(now_ms - line->start_ms - line->suspended_ms) + 1000 * (double)line->seconds_left : NAN;
}

/* Of the trials that have succeeded or, as long as none has, of those that run; NAN: unknown. */
static double mean_ms(const struct sweep_view *view, bool succeeded, int64_t now_ms)
{
    double sum = 0;
    unsigned count = 0;
    for (size_t i = 0; i < view->count; i++) {
        double whole = whole_ms(view->trials[i], succeeded, now_ms);
        if (isnan(whole))
            continue;
        sum += whole;
        count++;
    }
    if (count == 0 && succeeded)
        return mean_ms(view, false, now_ms);
    return count > 0 ? sum / count : NAN;
}

/* What a trial reports of itself is better than the mean only late: its first steps are slow. */
static double trial_left_ms(const struct trial_line *line, double mean, int64_t now_ms)
{
    double left = line->start_ms == FIELD_UNSET ? mean : mean - (double)(now_ms - line->start_ms - line->suspended_ms);
    if (left > 0)
        return left;
    return line->seconds_left >= 0 ? 1000 * (double)line->seconds_left : 0;
}

int64_t sweep_view_left_ms(const struct sweep_view *view, int64_t now_ms)
{
    const struct training_sweep *sweep = view->sweep;
    double mean = mean_ms(view, true, now_ms), work = 0, longest = 0;
    int64_t waiting = sweep->status.trials.total - sweep_done(sweep) - sweep->status.trials.paused;
    if (isnan(mean) || view->interrupted || sweep->suspend || !holds(sweep, SWEEP_RUNNING) || waiting <= 0)
        return -1;
    int64_t lanes = sweep->parallelism < waiting ? sweep->parallelism : waiting;
    for (size_t i = 0; i < view->count; i++) {
        if (trial_line_is_over(view->trials[i]) || view->trials[i]->paused)
            continue;
        double left = trial_left_ms(view->trials[i], mean, now_ms);
        work += left;
        longest = fmax(longest, left);
        waiting--;
    }
    work += mean * (double)(waiting > 0 ? waiting : 0);
    return llround(fmax(longest, work / (double)lanes));
}
