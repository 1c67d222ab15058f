/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/sweep/sweep_plan.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/extremes.h"
#include "common/job/enum_words.h"
#include "common/job/sweep_parameter.h"
#include "common/job/sweep_template.h"
#include "common/job/sweep_value.h"
#include "common/memory.h"
#include "common/utf8.h"
#include "operator/controller/plan/index_set.h"
#include "operator/controller/sweep/early_stopping.h"
#include "operator/controller/sweep/population.h"
#include "operator/controller/sweep/promotion.h"
#include "operator/controller/sweep/suggestion.h"
#include "operator/controller/sweep/trial_build.h"

#define FIRST_CAPACITY 16
#define MS_PER_HOUR 3600000

struct sweep_planning {
    const struct sweep_input *input;
    const struct training_sweep *sweep;
    struct sweep_plan *plan;
    struct sweep_status *next;
    int64_t total, started;
    bool budget_used;
    struct trial_record *results; /* by number, of trials that have been started, as views and notes */
    struct index_set pending;
    struct index_set stopping, was_stopping; /* wanted, and as the status in the cache has it */
    struct index_set promoted;
    const struct trial_view **views; /* NULL: the cache has none */
    const struct trial_note **notes; /* the last one of each trial; NULL: there is none */
};

/* ---------------------------------------------------------------- parts of the plan */

__attribute__((format(printf, 2, 3))) static const char *format(struct sweep_planning *planning, const char *pattern,
                                                                ...)
{
    va_list arguments;
    char text[CONDITION_MESSAGE_MAX];
    va_start(arguments, pattern);
    vsnprintf(text, sizeof text, pattern, arguments);
    va_end(arguments);
    text[utf8_fit(text, sizeof text - 1)] = '\0';
    return arena_copy_string(&planning->plan->arena, text);
}

static const char *name_of(struct sweep_planning *planning, int64_t trial)
{
    SCOPED_FREE char *name = trial_name(planning->sweep, trial);
    return arena_copy_string(&planning->plan->arena, name);
}

static void act(struct sweep_planning *planning, enum sweep_action_type type, int64_t trial)
{
    struct sweep_plan *plan = planning->plan;
    if (plan->action_count == plan->action_capacity) {
        plan->action_capacity = plan->action_capacity ? 2 * plan->action_capacity : FIRST_CAPACITY;
        plan->actions = memory_resize(plan->actions, plan->action_capacity, sizeof *plan->actions);
    }
    plan->actions[plan->action_count++] = (struct sweep_action){type, trial};
}

static void sweep_event(struct sweep_planning *planning, bool warning, const char *reason, const char *action,
                        const char *note)
{
    struct sweep_plan *plan = planning->plan;
    if (plan->event_count == plan->event_capacity) {
        plan->event_capacity = plan->event_capacity ? 2 * plan->event_capacity : FIRST_CAPACITY;
        plan->events = memory_resize(plan->events, plan->event_capacity, sizeof *plan->events);
    }
    plan->events[plan->event_count++] = (struct sweep_event){warning, reason, action, note};
}

static bool is_true(const struct sweep_status *status, enum sweep_condition type)
{
    return status->conditions[type].status == CONDITION_TRUE;
}

static void sweep_condition_set(struct sweep_planning *planning, enum sweep_condition type,
                                enum condition_status status, const char *reason, const char *message)
{
    struct condition *condition = &planning->next->conditions[type];
    if (condition->status != status)
        condition->last_transition_ms = planning->input->now_ms;
    condition->status = status;
    condition->reason = reason;
    condition->message = message;
    condition->observed_generation = planning->sweep->generation;
}

/* ---------------------------------------------------------------- what there is */

/* The results in memory of the plan, with room for those of the trials that it promises. */
static void read_results(struct sweep_planning *planning)
{
    const struct sweep_status *old = &planning->sweep->status;
    struct arena *arena = &planning->plan->arena;
    planning->started = int64_min(old->result_count, SWEEP_TRIALS_MAX);
    planning->results =
        arena_allocate(arena, (size_t)int64_max(planning->started, planning->total) + 1, sizeof *planning->results);
    for (int64_t i = 0; i < planning->started; i++)
        planning->results[i] = old->results[i];
    planning->pending = index_set_make(arena, SWEEP_TRIALS_MAX);
    planning->stopping = index_set_make(arena, SWEEP_TRIALS_MAX);
    planning->was_stopping = index_set_make(arena, SWEEP_TRIALS_MAX);
    planning->promoted = index_set_make(arena, SWEEP_TRIALS_MAX);
    index_set_parse(&planning->pending, old->pending);
    index_set_parse(&planning->stopping, old->stopping);
    index_set_parse(&planning->was_stopping, old->stopping);
    index_set_parse(&planning->promoted, old->promoted);
}

static void read_trials(struct sweep_planning *planning)
{
    const struct sweep_input *input = planning->input;
    size_t room = (size_t)int64_max(planning->started, planning->total) + 1;
    planning->views = arena_allocate(&planning->plan->arena, room, sizeof *planning->views);
    planning->notes = arena_allocate(&planning->plan->arena, room, sizeof *planning->notes);
    for (size_t i = 0; i < input->trial_count; i++) {
        int64_t trial = trial_number(planning->sweep, input->trials[i]->name);
        if (trial >= 0 && trial < planning->started)
            planning->views[trial] = input->trials[i];
    }
    for (size_t i = 0; i < input->note_count; i++)
        if (input->notes[i].trial < planning->started)
            planning->notes[input->notes[i].trial] = &input->notes[i];
}

/* Or is about to be created, or to be resumed. */
static bool is_running(const struct sweep_planning *planning, int64_t trial)
{
    return planning->results[trial].state == TRIAL_RUNNING;
}

static int64_t count(const struct sweep_planning *planning, enum trial_state state)
{
    int64_t number = 0;
    for (int64_t i = 0; i < planning->started; i++)
        number += planning->results[i].state == state;
    return number;
}

static int64_t count_pending(const struct sweep_planning *planning)
{
    int64_t number = 0;
    for (int64_t i = 0; i < planning->started; i++)
        number += index_set_has(&planning->pending, i);
    return number;
}

/* The sweep with what this plan has found and recorded so far. Borrows; do not release it. */
static struct training_sweep updated_sweep(const struct sweep_planning *planning)
{
    struct training_sweep sweep = *planning->sweep;
    sweep.status.results = planning->results;
    sweep.status.result_count = (unsigned)planning->started;
    return sweep;
}

/* ---------------------------------------------------------------- who goes on */

/* Returns the paused trial that goes on next; -1: none. If otherwise the sweep would end without a trial that has come to its end, it is
 * the best one that has come furthest, even if the budget is used: trials that wait at each rung all pause then. */
static int64_t next_promotion(const struct sweep_planning *planning)
{
    const struct training_sweep *sweep = planning->sweep;
    if (!sweep_pauses_trials(sweep))
        return -1;
    int64_t trial = planning->budget_used ? -1 : promotion_next(sweep, planning->results, planning->started);
    if (trial >= 0 || planning->started < planning->total || count(planning, TRIAL_RUNNING) > 0 ||
        count(planning, TRIAL_SUCCEEDED) > 0)
        return trial;
    return promotion_last(sweep, planning->results, planning->started);
}

/* ---------------------------------------------------------------- the budget */

/* Worker time that a trial has taken so far, as its job shows it; none if the job is gone or has no pods yet. Time that it was suspended
 * does not count. */
static int64_t worker_ms_of(const struct sweep_planning *planning, int64_t trial)
{
    const struct trial_view *view = planning->views[trial];
    if (!view || view->start_ms == FIELD_UNSET)
        return 0;
    int64_t end_ms = view->end_ms == FIELD_UNSET ? planning->input->now_ms : view->end_ms;
    return int64_max(end_ms - view->start_ms - view->suspended_ms, 0) * view->pods;
}

/* Of a trial that is over. The status keeps the sum, for when the job is gone. */
static void add_worker_time(struct sweep_planning *planning, int64_t trial)
{
    planning->next->worker_ms = int64_max(planning->next->worker_ms, 0) + worker_ms_of(planning, trial);
}

/* Once the budget is used, there are no more trials than have been started, and none that is paused goes on. */
static void heed_budget(struct sweep_planning *planning)
{
    if (!planning->sweep->has_budget)
        return;
    int64_t taken = int64_max(planning->next->worker_ms, 0);
    for (int64_t trial = 0; trial < planning->started; trial++) {
        enum trial_state state = planning->results[trial].state;
        bool is_over = state != TRIAL_RUNNING && state != TRIAL_PAUSED;
        taken += is_over ? 0 : worker_ms_of(planning, trial);
    }
    if ((double)taken < planning->sweep->budget.worker_hours * MS_PER_HOUR)
        return;
    planning->budget_used = planning->started < planning->total || next_promotion(planning) >= 0;
    planning->total = int64_min(planning->started, planning->total);
}

/* ---------------------------------------------------------------- what became of the trials */

/* Counts a trial as over, and forgets why it was to be stopped or paused. */
static void end_trial(struct sweep_planning *planning, int64_t trial, enum trial_state state, const char *objective)
{
    struct trial_record *result = &planning->results[trial];
    add_worker_time(planning, trial);
    index_set_remove(&planning->pending, trial);
    index_set_remove(&planning->stopping, trial);
    index_set_remove(&planning->promoted, trial);
    result->state = state;
    result->objective = arena_copy_string(&planning->plan->arena, objective);
    result->step = FIELD_UNSET;
}

static void fail_trial(struct sweep_planning *planning, int64_t trial, const char *why)
{
    end_trial(planning, trial, TRIAL_FAILED, NULL);
    sweep_event(planning, true, "TrialFailed", "CountTrial", format(planning, "%s: %s", name_of(planning, trial), why));
}

/* Counts a trial whose job has failed. */
static void take_failure(struct sweep_planning *planning, int64_t trial, const struct trial_view *view)
{
    if (!view->diverged) {
        fail_trial(planning, trial, view->message);
        return;
    }
    end_trial(planning, trial, TRIAL_DIVERGED, NULL);
    sweep_event(planning, false, "TrialDiverged", "CountTrial",
                format(planning, "%s: %s", name_of(planning, trial), view->message));
}

static bool is_better(const struct sweep_planning *planning, const char *value, int64_t trial)
{
    const struct sweep_best *best = &planning->next->best;
    if (!best->trial || !best->objective)
        return true;
    double now = strtod(value, NULL), before = strtod(best->objective, NULL);
    if (now == before)
        return trial < trial_number(planning->sweep, best->trial);
    return planning->sweep->objective.goal == GOAL_MAXIMIZE ? now > before : now < before;
}

static void take_best(struct sweep_planning *planning, int64_t trial, const char *value)
{
    const struct training_sweep *sweep = planning->sweep;
    struct arena *arena = &planning->plan->arena;
    struct sweep_best *best = &planning->next->best;
    best->trial = name_of(planning, trial);
    best->objective = arena_copy_string(arena, value);
    best->parameters = arena_allocate(arena, sweep->parameter_count, sizeof *best->parameters);
    best->parameter_count = 0;
    for (unsigned i = 0; i < sweep->parameter_count; i++) {
        SCOPED_JSON *suggested = suggestion_value(sweep, i, trial);
        SCOPED_FREE char *text = json_scalar_text(suggested);
        if (!suggested)
            continue;
        best->parameters[best->parameter_count++] = (struct sweep_assignment){
            .name = sweep_parameter_name(&sweep->parameters[i]),
            .value = arena_copy_string(arena, text),
        };
    }
}

static void succeed_trial(struct sweep_planning *planning, int64_t trial, const struct trial_view *view)
{
    const char *metric = sweep_final_metric(planning->sweep);
    const char *value = trial_view_metric(view, metric);
    if (!value) {
        fail_trial(planning, trial,
                   format(planning,
                          "it succeeded, but reports no finite %s; take another objective.metric, or see what makes "
                          "a trial report it: data.validation in the template, or the script itself",
                          metric));
        return;
    }
    end_trial(planning, trial, TRIAL_SUCCEEDED, value);
    if (is_better(planning, value, trial))
        take_best(planning, trial, value);
}

/* The objective and the step stay as they were when it was decided. */
static void count_stopped(struct sweep_planning *planning, int64_t trial)
{
    if (!sweep_pauses_trials(planning->sweep))
        add_worker_time(planning, trial);
    index_set_remove(&planning->stopping, trial);
    planning->results[trial].state = sweep_pauses_trials(planning->sweep) ? TRIAL_PAUSED : TRIAL_STOPPED;
}

/* A trial that waits at the rung is paused in any case, since only new pods get to know how far it may go: if it is among the best, it is
 * promoted next. A crew that has started over may come to a rung that the trial has gone on from: then it does not pause there. */
static const char *judge_rung(struct sweep_planning *planning, int64_t trial, int rung, bool waits)
{
    const struct training_sweep *sweep = planning->sweep;
    const struct trial_record *results = planning->results;
    struct arena *arena = &planning->plan->arena;
    if (!sweep_pauses_trials(sweep))
        return early_stopping_judge(sweep, results, planning->started, trial, rung, arena);
    const char *why = rung < early_stopping_top_rung(&results[trial])
                          ? NULL
                          : promotion_judge(sweep, results, planning->started, trial, rung, arena);
    return why || !waits ? why : "it is among the best that reached this rung, and continues from its checkpoint";
}

/* Records the value that a trial has at a rung. Returns why it has to be stopped or paused; NULL: it goes on. */
static const char *judge_report(struct sweep_planning *planning, int64_t trial, const struct trial_view *view)
{
    const struct training_sweep *sweep = planning->sweep;
    struct arena *arena = &planning->plan->arena;
    int64_t steps = trial_view_steps(view, sweep->objective.metric);
    const char *value = trial_view_metric(view, sweep->objective.metric);
    int rung = value ? early_stopping_record(sweep, steps, value, &planning->results[trial], arena) : -1;
    if (rung < 0 || view->succeeded || (view->total_steps != FIELD_UNSET && steps >= view->total_steps))
        return NULL;
    bool waits = view->pause_step != FIELD_UNSET && steps >= view->pause_step;
    return judge_rung(planning, trial, rung, waits);
}

static void watch_trial(struct sweep_planning *planning, int64_t trial, const struct trial_view *view)
{
    const char *metric = planning->sweep->objective.metric, *why = judge_report(planning, trial, view);
    struct trial_record *result = &planning->results[trial];
    bool pauses = sweep_pauses_trials(planning->sweep);
    if (!why)
        return;
    index_set_add(&planning->stopping, trial);
    result->objective = arena_copy_string(&planning->plan->arena, trial_view_metric(view, metric));
    result->step = trial_view_steps(view, metric);
    sweep_event(planning, false, pauses ? "TrialPaused" : "TrialStopped", pauses ? "PauseTrial" : "StopTrial",
                format(planning, "%s has %s %s after step %" PRId64 ": %s", name_of(planning, trial), metric,
                       result->objective, result->step, why));
}

/* The status says that it is stopped or paused before its job is suspended. While the job still has pods, it may yet end by itself. A job
 * that somebody else has suspended still has the step at which it waits; the patch that suspends it removes the step. */
static void stop_trial(struct sweep_planning *planning, int64_t trial, const struct trial_view *view)
{
    bool patched = view->suspend && view->pause_step == FIELD_UNSET;
    if (patched && view->suspended)
        count_stopped(planning, trial);
    else if (!patched && index_set_has(&planning->was_stopping, trial))
        act(planning, SWEEP_SUSPEND_TRIAL, trial);
}

/* A job that the cache shows. */
static void judge_view(struct sweep_planning *planning, int64_t trial, const struct trial_view *view)
{
    index_set_remove(&planning->pending, trial);
    if (!view->suspend)
        index_set_remove(&planning->promoted, trial);
    if (view->succeeded) {
        judge_report(planning, trial, view);
        succeed_trial(planning, trial, view);
    } else if (view->failed) {
        take_failure(planning, trial, view);
    } else if (index_set_has(&planning->stopping, trial)) {
        stop_trial(planning, trial, view);
    } else if (!index_set_has(&planning->promoted, trial)) {
        watch_trial(planning, trial, view);
    }
}

static void judge_absent(struct sweep_planning *planning, int64_t trial)
{
    if (index_set_has(&planning->stopping, trial) && !sweep_pauses_trials(planning->sweep))
        count_stopped(planning, trial);
    else
        fail_trial(planning, trial, "the job was deleted before it was over");
}

/* A person may have resumed its job, or deleted it. */
static void judge_paused(struct sweep_planning *planning, int64_t trial)
{
    const struct trial_view *view = planning->views[trial];
    const struct trial_note *note = planning->notes[trial];
    if (view && view->succeeded)
        succeed_trial(planning, trial, view);
    else if (view && view->failed)
        take_failure(planning, trial, view);
    else if (!view && note && note->kind == TRIAL_NOTE_ABSENT)
        judge_absent(planning, trial);
    else if (!view)
        act(planning, SWEEP_LOOK_FOR_TRIAL, trial);
}

static void judge_running(struct sweep_planning *planning, int64_t trial)
{
    const struct trial_note *note = planning->notes[trial];
    bool was_pending = index_set_has(&planning->pending, trial);
    if (planning->views[trial]) {
        judge_view(planning, trial, planning->views[trial]);
    } else if (note && note->kind == TRIAL_NOTE_REFUSED && was_pending) {
        fail_trial(planning, trial, note->message);
    } else if (note && note->kind == TRIAL_NOTE_ABSENT && !was_pending) {
        judge_absent(planning, trial);
    } else if (!was_pending) {
        act(planning, SWEEP_LOOK_FOR_TRIAL, trial);
    } else if (note && note->kind == TRIAL_NOTE_SEEN) {
        index_set_remove(&planning->pending, trial);
    }
}

static void judge_trials(struct sweep_planning *planning)
{
    for (int64_t trial = 0; trial < planning->started; trial++) {
        if (is_running(planning, trial))
            judge_running(planning, trial);
        else if (planning->results[trial].state == TRIAL_PAUSED)
            judge_paused(planning, trial);
    }
}

/* ---------------------------------------------------------------- suspending and resuming */

/* The status says that the sweep suspends its trials, or that it has. */
static bool has_begun_to_suspend(const struct sweep_status *status)
{
    const struct condition *condition = &status->conditions[SWEEP_SUSPENDED];
    return condition->status == CONDITION_TRUE ||
           (condition->status == CONDITION_FALSE && strcmp(condition->reason, "Suspending") == 0);
}

/* Returns how many trials run and have another `suspend` than this one; changes it if `now`. A trial that is to be
 * stopped is suspended by stop_trial, and not resumed. */
static int64_t change_suspend(struct sweep_planning *planning, bool suspend, bool now)
{
    int64_t others = 0;
    for (int64_t trial = 0; trial < planning->started; trial++) {
        const struct trial_view *view = planning->views[trial];
        if (!view || !is_running(planning, trial) || view->suspend == suspend)
            continue;
        bool stopping = index_set_has(&planning->stopping, trial);
        if (stopping && !suspend)
            continue;
        others++;
        if (now && !stopping)
            act(planning, suspend ? SWEEP_SUSPEND_TRIAL : SWEEP_RESUME_TRIAL, trial);
    }
    return others;
}

/* Returns whether every trial that runs has been suspended; suspends the others, once the status says so. */
static bool suspend_trials(struct sweep_planning *planning)
{
    bool begun = has_begun_to_suspend(&planning->sweep->status);
    if (change_suspend(planning, true, begun) == 0)
        return true;
    if (!begun)
        sweep_condition_set(planning, SWEEP_SUSPENDED, CONDITION_FALSE, "Suspending", "trials are being suspended");
    return false;
}

/* Returns whether no trial is suspended because the sweep was. */
static bool resume_trials(struct sweep_planning *planning)
{
    if (!has_begun_to_suspend(&planning->sweep->status))
        return true;
    if (change_suspend(planning, false, true) > 0)
        return false;
    sweep_condition_set(planning, SWEEP_SUSPENDED, CONDITION_FALSE, "Resumed", "the sweep goes on");
    return true;
}

/* ---------------------------------------------------------------- going on */

static void promote_trial(struct sweep_planning *planning, int64_t trial)
{
    struct trial_record *result = &planning->results[trial];
    sweep_event(
        planning, false, "TrialPromoted", "PromoteTrial",
        format(planning, "%s goes on after its pause at step %" PRId64, name_of(planning, trial), result->step));
    index_set_add(&planning->promoted, trial);
    result->state = TRIAL_RUNNING;
    result->objective = NULL;
    result->step = FIELD_UNSET;
}

/* Those that the status in the cache lists, and nothing else. */
static void resume_promoted(struct sweep_planning *planning)
{
    for (int64_t trial = 0; trial < planning->started; trial++)
        if (planning->views[trial] && index_set_has(&planning->promoted, trial))
            act(planning, SWEEP_RESUME_TRIAL, trial);
}

/* ---------------------------------------------------------------- the end */

static void sweep_finish(struct sweep_planning *planning, enum sweep_condition type, const char *reason,
                         const char *message)
{
    sweep_condition_set(planning, type, CONDITION_TRUE, reason, message);
    if (planning->next->conditions[SWEEP_RUNNING].status != CONDITION_ABSENT)
        sweep_condition_set(planning, SWEEP_RUNNING, CONDITION_FALSE, reason, "the sweep is over");
    if (planning->next->conditions[SWEEP_SUSPENDED].status != CONDITION_ABSENT)
        sweep_condition_set(planning, SWEEP_SUSPENDED, CONDITION_FALSE, reason, "the sweep is over");
    planning->next->completion_ms = planning->input->now_ms;
    sweep_event(planning, type == SWEEP_FAILED, reason, "EndSweep", message);
}

/* Returns whether all trials of a population's newest generation have failed or diverged, so that none has a checkpoint from which the next
 * could go on. */
static bool has_died_out(const struct sweep_planning *planning)
{
    const struct training_sweep *sweep = planning->sweep;
    int64_t next = planning->started;
    return population_is_used(sweep) && next < planning->total && population_generation(sweep, next) > 0 &&
           population_may_start(sweep, planning->results, next) &&
           population_parent(sweep, planning->results, next) == FIELD_UNSET;
}

/* Returns whether trials run, or can be started or promoted. */
static bool has_trials_left(const struct sweep_planning *planning)
{
    return planning->started < planning->total || count(planning, TRIAL_RUNNING) > 0 || next_promotion(planning) >= 0;
}

/* Returns whether more trials have failed than spec.maxFailedTrials allows. */
static bool has_too_many_failures(const struct sweep_planning *planning)
{
    return count(planning, TRIAL_FAILED) > planning->sweep->max_failed_trials;
}

static const char *say_exhausted(struct sweep_planning *planning)
{
    struct training_sweep sweep = updated_sweep(planning);
    if (!sweep_is_exhausted(&sweep))
        return "";
    return format(planning,
                  "; the parameters have no other combination of values, so the sweep ends before maxTrials %" PRId64,
                  sweep.max_trials);
}

/* Ends a sweep that has nothing left to run. */
static void finish_with_results(struct sweep_planning *planning)
{
    int64_t failed = count(planning, TRIAL_FAILED), succeeded = count(planning, TRIAL_SUCCEEDED);
    int64_t stopped = count(planning, TRIAL_STOPPED), paused = count(planning, TRIAL_PAUSED);
    int64_t diverged = count(planning, TRIAL_DIVERGED);
    const struct sweep_best *best = &planning->next->best;
    if (succeeded == 0) {
        sweep_finish(planning, SWEEP_FAILED, "NoTrialSucceeded",
                     format(planning, "no trial has succeeded: %" PRId64 " failed%s%s; the events say why", failed,
                            diverged == 0 ? "" : format(planning, ", %" PRId64 " diverged", diverged),
                            stopped == 0 ? "" : format(planning, ", %" PRId64 " were stopped early", stopped)));
        return;
    }
    sweep_finish(planning, SWEEP_COMPLETE, planning->budget_used ? "BudgetUsed" : "TrialsDone",
                 format(planning, "%s%" PRId64 " of %" PRId64 " trials succeeded%s%s%s; the best is %s with %s %s%s",
                        planning->budget_used ? "the budget of worker time is used; " : "", succeeded,
                        planning->started, diverged == 0 ? "" : format(planning, ", %" PRId64 " diverged", diverged),
                        stopped == 0 ? "" : format(planning, ", %" PRId64 " were stopped early", stopped),
                        paused == 0 ? "" : format(planning, ", %" PRId64 " stay paused", paused), best->trial,
                        planning->sweep->objective.metric, best->objective, say_exhausted(planning)));
}

/* Returns whether the sweep is over, or will be as soon as its trials are suspended. */
static bool end_sweep(struct sweep_planning *planning)
{
    int64_t failed = count(planning, TRIAL_FAILED);
    if (has_too_many_failures(planning)) {
        if (suspend_trials(planning))
            sweep_finish(planning, SWEEP_FAILED, "TooManyFailedTrials",
                         format(planning,
                                "%" PRId64 " trials have failed, and maxFailedTrials is %" PRId64
                                "; the events say why they did",
                                failed, planning->sweep->max_failed_trials));
        return true;
    }
    if (has_died_out(planning)) {
        sweep_finish(planning, SWEEP_FAILED, "GenerationFailed",
                     format(planning,
                            "all trials of generation %" PRId64
                            " (counted from 0) have failed or diverged, so the next "
                            "generation has no checkpoint to continue from; the events of the trials say why",
                            population_generation(planning->sweep, planning->started) - 1));
        return true;
    }
    if (has_trials_left(planning))
        return false;
    finish_with_results(planning);
    return true;
}

/* ---------------------------------------------------------------- the next trials */

/* Those that the status in the cache promises, and nothing else. */
static void create_pending(struct sweep_planning *planning)
{
    for (int64_t trial = 0; trial < planning->started; trial++)
        if (index_set_has(&planning->pending, trial))
            act(planning, SWEEP_CREATE_TRIAL, trial);
}

static void record_values(struct sweep_planning *planning, int64_t trial)
{
    struct training_sweep sweep = updated_sweep(planning);
    if (population_is_used(&sweep))
        planning->results[trial].parent = population_parent(&sweep, planning->results, trial);
    SCOPED_FREE char *values = suggestion_record(&sweep, trial);
    if (suggestion_is_to_record(&sweep, trial, values))
        planning->results[trial].values = arena_copy_string(&planning->plan->arena, values);
}

/* A trial whose values make no valid job fails without one. */
static void promise_trial(struct sweep_planning *planning)
{
    struct error error = ERROR_INIT;
    SCOPED_JSON *object = NULL;
    int64_t trial = planning->started++;
    planning->results[trial] =
        (struct trial_record){.state = TRIAL_RUNNING, .step = FIELD_UNSET, .parent = FIELD_UNSET};
    record_values(planning, trial);
    struct training_sweep sweep = updated_sweep(planning);
    if (trial_build(&sweep, trial, &object, &error) < 0)
        fail_trial(planning, trial, format(planning, "%s", error.message));
    else
        index_set_add(&planning->pending, trial);
}

static bool may_start(const struct sweep_planning *planning)
{
    return !population_is_used(planning->sweep) ||
           (population_may_start(planning->sweep, planning->results, planning->started) && !has_died_out(planning));
}

/* Lets a paused trial go on, or promises a new one. Returns false if there is neither. */
static bool fill_place(struct sweep_planning *planning)
{
    int64_t promoted = next_promotion(planning);
    if (promoted >= 0)
        promote_trial(planning, promoted);
    else if (planning->started < planning->total && may_start(planning))
        promise_trial(planning);
    else
        return false;
    return true;
}

/* Choosing the values of a trial takes up to 0.2 s (TPE: 32 parameters, 1,000 trials), and other objects wait meanwhile. So one plan fills
 * a few places, and the next one, which follows the write of the status, fills more. */
static void fill_places(struct sweep_planning *planning)
{
    for (int filled = 0; filled < SWEEP_STARTS_MAX; filled++)
        if (count(planning, TRIAL_RUNNING) >= planning->sweep->parallelism || has_too_many_failures(planning) ||
            !fill_place(planning))
            break;
    if (planning->next->start_ms == FIELD_UNSET)
        planning->next->start_ms = planning->input->now_ms;
}

static void update_running(struct sweep_planning *planning)
{
    const char *obstacle = planning->input->obstacle;
    int64_t active = count(planning, TRIAL_RUNNING);
    if (obstacle && count_pending(planning) > 0)
        sweep_condition_set(planning, SWEEP_RUNNING,
                            active > count_pending(planning) ? CONDITION_TRUE : CONDITION_FALSE, "TrialNotCreated",
                            format(planning, "%s", obstacle));
    else
        sweep_condition_set(planning, SWEEP_RUNNING, CONDITION_TRUE, "TrialsRunning",
                            "trials run, or are about to be created");
}

/* ---------------------------------------------------------------- one plan */

/* Returns why no trial can be made from the spec; NULL: nothing is wrong with it. */
static const char *what_is_wrong(struct sweep_planning *planning)
{
    struct error error = ERROR_INIT;
    SCOPED_JSON *object = NULL;
    if (planning->input->invalid)
        return format(planning, "%s", planning->input->invalid);
    if (planning->started > 0)
        return NULL;
    if (trial_build(planning->sweep, 0, &object, &error) < 0)
        return format(planning, "%s", error.message);
    return sweep_template_fault(planning->sweep, json_member(object, "spec"));
}

/* An earlier operator accepted the spec, and this one cannot say what the trials' values are. */
static void hold_sweep(struct sweep_planning *planning, const char *wrong)
{
    sweep_condition_set(planning, SWEEP_RUNNING, CONDITION_FALSE, "InvalidSpec", wrong);
}

/* Returns what the API server says about the first trials, if it finds them invalid; NULL: it does not. */
static const char *first_refusal(const struct sweep_planning *planning)
{
    const char *refusal = NULL;
    for (int64_t trial = 0; trial < planning->started; trial++) {
        const struct trial_note *note = planning->notes[trial];
        if (planning->views[trial] || !index_set_has(&planning->pending, trial))
            return NULL;
        if (!refusal && note && note->kind == TRIAL_NOTE_REFUSED)
            refusal = note->message;
    }
    return refusal;
}

/* None of them has been created, so the status counts none. */
static void withdraw_trials(struct sweep_planning *planning)
{
    for (int64_t trial = 0; trial < planning->started; trial++)
        index_set_remove(&planning->pending, trial);
    planning->started = 0;
}

static void suspend_sweep(struct sweep_planning *planning)
{
    if (!suspend_trials(planning))
        return;
    sweep_condition_set(planning, SWEEP_SUSPENDED, CONDITION_TRUE, "Suspended",
                        "no trials are started, and the trials that were running are suspended");
    sweep_condition_set(planning, SWEEP_RUNNING, CONDITION_FALSE, "Suspended", "the sweep is suspended");
}

static void go_on(struct sweep_planning *planning)
{
    if (!resume_trials(planning))
        return;
    create_pending(planning);
    resume_promoted(planning);
    fill_places(planning);
    update_running(planning);
}

static void decide(struct sweep_planning *planning)
{
    const char *wrong = what_is_wrong(planning), *refusal = first_refusal(planning);
    if (wrong && planning->started == 0) {
        sweep_finish(planning, SWEEP_FAILED, "InvalidSpec", wrong);
    } else if (wrong) {
        hold_sweep(planning, wrong);
    } else if (refusal) {
        sweep_finish(planning, SWEEP_FAILED, "InvalidTemplate", format(planning, "%s", refusal));
        withdraw_trials(planning);
    } else {
        judge_trials(planning);
        heed_budget(planning);
        if (end_sweep(planning))
            return;
        if (planning->sweep->suspend)
            suspend_sweep(planning);
        else
            go_on(planning);
    }
}

static void fill_status(struct sweep_planning *planning)
{
    struct arena *arena = &planning->plan->arena;
    struct sweep_status *next = planning->next;
    next->observed_generation = planning->sweep->generation;
    next->results = planning->results;
    next->result_count = (unsigned)planning->started;
    next->pending = index_set_print(&planning->pending, arena);
    next->stopping = index_set_print(&planning->stopping, arena);
    next->promoted = index_set_print(&planning->promoted, arena);
    next->trials.total = int64_max(planning->started, planning->total);
    next->trials.running = count(planning, TRIAL_RUNNING);
    next->trials.succeeded = count(planning, TRIAL_SUCCEEDED);
    next->trials.failed = count(planning, TRIAL_FAILED);
    next->trials.diverged = count(planning, TRIAL_DIVERGED);
    next->trials.stopped = count(planning, TRIAL_STOPPED);
    next->trials.paused = count(planning, TRIAL_PAUSED);
}

static bool differs(const struct sweep_status *before, const struct sweep_status *after)
{
    SCOPED_JSON *old = sweep_status_to_json(before);
    SCOPED_JSON *new = sweep_status_to_json(after);
    return !json_equal(old, new);
}

/* ---------------------------------------------------------------- going on after the end */

/* Returns the condition that says that the sweep has ended; SWEEP_CONDITION_COUNT: it has not. */
static enum sweep_condition find_end(const struct sweep_status *status)
{
    return is_true(status, SWEEP_COMPLETE) ? SWEEP_COMPLETE
           : is_true(status, SWEEP_FAILED) ? SWEEP_FAILED
                                           : SWEEP_CONDITION_COUNT;
}

/* Returns whether the sweep ended at a limit, and has more to do under the limits that its spec has now. */
static bool has_raised_limit(struct sweep_planning *planning, const char *reason)
{
    static const char *const reasons[] = {"TrialsDone", "NoTrialSucceeded", "BudgetUsed", "TooManyFailedTrials", NULL};
    if (words_find(reasons, reason) < 0 || planning->input->invalid)
        return false;
    heed_budget(planning);
    return !has_too_many_failures(planning) && has_trials_left(planning);
}

/* Trials that were suspended at the end are resumed as after a pause of the whole sweep. */
static void reopen_sweep(struct sweep_planning *planning, enum sweep_condition type)
{
    static const char message[] = "a limit in the spec was raised, so the sweep goes on";
    bool holds_trials = count(planning, TRIAL_RUNNING) > 0;
    sweep_condition_set(planning, type, CONDITION_FALSE, "LimitRaised", message);
    if (holds_trials)
        sweep_condition_set(planning, SWEEP_SUSPENDED, CONDITION_TRUE, "LimitRaised",
                            "the trials that were suspended when the sweep ended are about to be resumed");
    sweep_condition_set(planning, SWEEP_RUNNING, holds_trials ? CONDITION_FALSE : CONDITION_TRUE, "LimitRaised",
                        message);
    planning->next->completion_ms = FIELD_UNSET;
    sweep_event(planning, false, "LimitRaised", "ReopenSweep", message);
}

/* Decides once for each change of the spec whether a sweep that has ended goes on. Returns whether the status has to be written. */
static bool consider_reopening(struct sweep_planning *planning)
{
    const struct training_sweep *sweep = planning->sweep;
    enum sweep_condition end = find_end(&sweep->status);
    if (sweep->status.observed_generation == sweep->generation)
        return false;
    planning->next->observed_generation = sweep->generation;
    read_results(planning);
    read_trials(planning);
    if (has_raised_limit(planning, sweep->status.conditions[end].reason)) {
        reopen_sweep(planning, end);
        fill_status(planning);
    }
    return true;
}

/* Deletes a sweep that has ended when its TTL has passed. */
static void heed_ttl(struct sweep_planning *planning)
{
    const struct training_sweep *sweep = planning->sweep;
    if (sweep->ttl_seconds_after_finished == FIELD_UNSET || sweep->status.completion_ms == FIELD_UNSET)
        return;
    int64_t due_ms = sweep->status.completion_ms + 1000 * sweep->ttl_seconds_after_finished;
    if (due_ms <= planning->input->now_ms)
        act(planning, SWEEP_DELETE, 0);
    else
        planning->plan->again_ms = due_ms;
}

void plan_sweep(const struct sweep_input *input, struct sweep_plan *ret_plan)
{
    const struct training_sweep *sweep = input->sweep;
    struct sweep_planning planning = {
        .input = input,
        .sweep = sweep,
        .plan = ret_plan,
        .next = &ret_plan->status,
    };
    ret_plan->status = sweep->status;
    if (sweep->deleted_ms != FIELD_UNSET)
        return;
    planning.total = input->invalid ? 0 : sweep_trial_count(sweep);
    if (find_end(&sweep->status) != SWEEP_CONDITION_COUNT) {
        ret_plan->write_status = consider_reopening(&planning);
        if (!ret_plan->write_status)
            heed_ttl(&planning);
        return;
    }
    read_results(&planning);
    read_trials(&planning);
    decide(&planning);
    fill_status(&planning);
    ret_plan->write_status = differs(&sweep->status, &ret_plan->status);
}

void sweep_plan_release(struct sweep_plan *plan)
{
    free(plan->actions);
    free(plan->events);
    arena_release(&plan->arena);
    *plan = (struct sweep_plan){0};
}
