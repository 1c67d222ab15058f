/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan against a model of a cluster: trials that end and are deleted at random, caches that lag, and an operator that is killed
 * before or after any single write, with a create still on the wire. At every create it is checked that the trial was promised
 * and never existed before, and that no more run than may; each sweep has to come to its end, with the best of its trials. With TPE,
 * whose values follow from earlier results, what is recorded of a trial must never change, and its job must have those values.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operator/controller/plan/index_set.h"
#include "operator/controller/sweep/sweep_plan.h"
#include "operator/controller/sweep/trial_build.h"
#include "sweep_scene.h"

#define SCHEDULES 300
#define STEPS 120
#define CALM_STEPS 200
#define TRIALS 6
#define PARALLELISM 2

#define GRID                                                                                                           \
    SWEEP_HEAD "  algorithm: {type: Grid}\n  parallelism: 2\n  maxFailedTrials: 6\n"                                   \
               "  parameters: [{path: coxswain.training.batchSize, integer: {min: 11, max: 16}}]\n"
#define TPE                                                                                                            \
    SWEEP_HEAD "  algorithm: {type: TPE, startupTrials: 1}\n  maxTrials: 6\n  parallelism: 2\n  maxFailedTrials: 6\n"  \
               "  parameters: [{path: coxswain.training.batchSize, integer: {min: 11, max: 1000000}}]\n"

struct model {
    uint64_t random, seed;
    struct json *sweep; /* as the API server has it */
    int64_t version;
    struct json *trials[TRIALS]; /* NULL: there is no such job */
    int created[TRIALS];
    bool counted[TRIALS];     /* a status once said that it was seen */
    int64_t recorded[TRIALS]; /* the batch size that a status first had; 0: none has one */
    int late;                 /* the trial whose create is on the wire while its operator is dead; -1: none */
    /* the operator's memory */
    struct json *cached_sweep, *cached_trials[TRIALS];
    bool must_see; /* an own write, which the caches have to show before the next plan */
    struct trial_note notes[TRIALS];
    size_t note_count;
    bool calm;
    bool records; /* TPE: the status has the trials' values */
};

static struct model model;

static uint64_t draw(uint64_t below)
{
    model.random ^= model.random << 13;
    model.random ^= model.random >> 7;
    model.random ^= model.random << 17;
    return model.random % below;
}

static bool chance(unsigned percent)
{
    return !model.calm && draw(100) < percent;
}

#define CHECK(condition, text) cr_assert((condition), "schedule %" PRIu64 ": %s", model.seed, (text))

/* ---------------------------------------------------------------- the API server */

static bool is_over(const struct json *trial)
{
    return json_count(json_at(trial, "status.conditions")) > 0;
}

static const struct json *result_of(int64_t trial)
{
    return json_element(json_at(model.sweep, "status.results"), (size_t)trial);
}

/* The trial is counted as this. */
static bool result_is(int64_t trial, const char *state)
{
    return strcmp(json_string_at(result_of(trial), "state", ""), state) == 0;
}

static bool is_pending(int64_t trial)
{
    struct arena arena = {0};
    struct index_set members = index_set_make(&arena, TRIALS);
    index_set_parse(&members, json_string_at(model.sweep, "status.controllerState.pending", NULL));
    bool has = index_set_has(&members, trial);
    arena_release(&arena);
    return has;
}

/* The batch size in a record of the status that the API server has; 0: there is none. */
static int64_t record_of(int64_t trial)
{
    return strtoll(json_string_at(result_of(trial), "values", "0"), NULL, 10);
}

static void check_values(int64_t trial)
{
    int64_t built = json_integer_at(model.trials[trial], "spec.coxswain.training.batchSize", 0);
    CHECK(!model.records || built == model.recorded[trial], "a trial is created with other values than those recorded");
}

static void check_records(int64_t started)
{
    for (int64_t i = 0; model.records && i < started; i++) {
        CHECK(record_of(i) != 0, "a trial is promised without values");
        CHECK(model.recorded[i] == 0 || model.recorded[i] == record_of(i), "recorded values change");
        model.recorded[i] = record_of(i);
    }
}

static void server_create(int64_t trial)
{
    struct training_sweep sweep = sweep_of(model.sweep);
    struct error error = ERROR_INIT;
    int running = 0;
    CHECK(trial < sweep.status.result_count, "it creates what was not promised");
    if (!model.trials[trial]) {
        CHECK(++model.created[trial] == 1, "a trial is created twice");
        CHECK(trial_build(&sweep, trial, &model.trials[trial], &error) == 0, error.message);
        check_values(trial);
    }
    for (int i = 0; i < TRIALS; i++)
        running += model.trials[i] && !is_over(model.trials[i]);
    CHECK(running <= PARALLELISM, "too many trials run");
    training_sweep_release(&sweep);
}

static void server_suspend(int64_t trial, bool suspend)
{
    if (model.trials[trial])
        json_set_boolean(json_member(model.trials[trial], "spec"), "suspend", suspend);
}

static void set_version(void)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, ++model.version);
    json_set_string(json_member(model.sweep, "metadata"), "resourceVersion", text);
}

/* Returns whether the write was taken: nobody has changed the sweep since the operator read it. */
static bool server_status(const char *version, const struct sweep_status *status)
{
    if (strcmp(json_string_at(model.sweep, "metadata.resourceVersion", ""), version) != 0)
        return false;
    json_set(model.sweep, "status", sweep_status_to_json(status));
    for (int64_t i = 0; i < TRIALS; i++)
        model.counted[i] |= i < status->result_count && !is_pending(i);
    check_records(status->result_count);
    set_version();
    return true;
}

/* ---------------------------------------------------------------- what happens by itself */

static void end_trial(int trial)
{
    struct json *object = model.trials[trial];
    if (!object || is_over(object) || json_boolean_at(object, "spec.suspend", false))
        return;
    char text[16];
    snprintf(text, sizeof text, "%d", (int)draw(5));
    struct json *status = json_set_object(object, "status");
    struct json *condition = json_append(json_set_array(status, "conditions"), json_new_object());
    json_set_string(condition, "type", draw(4) == 0 ? "Failed" : "Succeeded");
    json_set_string(condition, "status", "True");
    json_set_string(condition, "message", "why");
    struct json *metric =
        json_append(json_set_array(json_set_object(status, "progress"), "metrics"), json_new_object());
    json_set_string(metric, "name", "validationLoss");
    json_set_string(metric, "value", text);
}

/* A person, or the time to live. What is still pending would be created anew by a successor (sweep_plan.h), and what a create on the
 * wire is about would be by that. */
static void delete_trial(int trial)
{
    if (!model.trials[trial] || !model.counted[trial] || model.late == trial)
        return;
    json_free(model.trials[trial]);
    model.trials[trial] = NULL;
}

static void toggle_suspend(void)
{
    struct json *spec = json_member(model.sweep, "spec");
    json_set_boolean(spec, "suspend", !model.calm && !json_boolean_at(spec, "suspend", false));
    set_version();
}

static void something_happens(void)
{
    if (chance(40) || model.calm)
        end_trial((int)draw(TRIALS));
    if (chance(5))
        delete_trial((int)draw(TRIALS));
    if (chance(4))
        toggle_suspend();
    if (model.late >= 0 && (model.calm || chance(30))) {
        server_create(model.late);
        model.late = -1;
    }
}

/* ---------------------------------------------------------------- the operator */

static void note(int64_t trial, enum trial_note_kind kind)
{
    size_t at = 0;
    while (at < model.note_count && model.notes[at].trial != trial)
        at++;
    model.note_count += at == model.note_count;
    model.notes[at] = (struct trial_note){trial, kind, NULL};
}

static void see_sweep(void)
{
    json_free(model.cached_sweep);
    model.cached_sweep = json_copy(model.sweep);
}

static void see_trial(int trial)
{
    bool vanished = model.cached_trials[trial] && !model.trials[trial];
    json_free(model.cached_trials[trial]);
    model.cached_trials[trial] = model.trials[trial] ? json_copy(model.trials[trial]) : NULL;
    if (vanished)
        note(trial, TRIAL_NOTE_SEEN);
}

static void see(void)
{
    if (model.must_see || !chance(30))
        see_sweep();
    for (int i = 0; i < TRIALS; i++)
        if (model.must_see || !chance(30))
            see_trial(i);
    model.must_see = false;
}

static void operator_is_killed(void)
{
    model.note_count = 0;
    model.must_see = false;
    for (int i = 0; i < TRIALS; i++) {
        json_free(model.cached_trials[i]);
        model.cached_trials[i] = NULL;
    }
    see_sweep();
    for (int i = 0; i < TRIALS; i++)
        if (chance(80)) /* a list may be older than the last creates */
            see_trial(i);
}

/* Returns false when the operator is killed on the way. */
static bool carry_out(const struct sweep_action *action)
{
    if (chance(8)) {
        if (action->type == SWEEP_CREATE_TRIAL && model.late < 0 && chance(50))
            model.late = (int)action->trial;
        return false;
    }
    if (action->type == SWEEP_CREATE_TRIAL)
        server_create(action->trial);
    else if (action->type != SWEEP_LOOK_FOR_TRIAL)
        server_suspend(action->trial, action->type == SWEEP_SUSPEND_TRIAL);
    else if (!model.trials[action->trial])
        note(action->trial, TRIAL_NOTE_ABSENT);
    model.must_see = true;
    return true;
}

static bool execute(const struct sweep_plan *plan, const char *version)
{
    for (size_t i = 0; i < plan->action_count; i++)
        if (!carry_out(&plan->actions[i]))
            return false;
    if (!plan->write_status)
        return true;
    if (chance(8))
        return false;
    model.must_see |= server_status(version, &plan->status);
    return !chance(8);
}

static void operator_turns(void)
{
    struct trial_view *views[TRIALS];
    size_t count = 0;
    see();
    struct training_sweep sweep = sweep_of(model.cached_sweep);
    for (int i = 0; i < TRIALS; i++)
        if (model.cached_trials[i])
            views[count++] = trial_view_new(model.cached_trials[i]);
    struct sweep_input input = {.sweep = &sweep,
                                .trials = (const struct trial_view *const *)views,
                                .trial_count = count,
                                .notes = model.notes,
                                .note_count = model.note_count,
                                .now_ms = 1800000000000};
    struct sweep_plan plan = {0};
    plan_sweep(&input, &plan);
    if (!execute(&plan, sweep.resource_version))
        operator_is_killed();
    sweep_plan_release(&plan);
    while (count > 0)
        trial_view_free(views[--count]);
    training_sweep_release(&sweep);
}

/* ---------------------------------------------------------------- schedules */

static bool has_ended(void)
{
    struct training_sweep sweep = sweep_of(model.sweep);
    bool ended = sweep.status.conditions[SWEEP_COMPLETE].status == CONDITION_TRUE ||
                 sweep.status.conditions[SWEEP_FAILED].status == CONDITION_TRUE;
    training_sweep_release(&sweep);
    return ended;
}

/* The lowest loss of those that succeeded and are still there: the best has it, or a lower one. */
static void check_best(void)
{
    double best = strtod(json_string_at(model.sweep, "status.best.objective", "inf"), NULL);
    for (int i = 0; i < TRIALS; i++) {
        const struct json *condition = json_first(json_at(model.trials[i], "status.conditions"));
        const struct json *metric = json_first(json_at(model.trials[i], "status.progress.metrics"));
        if (strcmp(json_string_at(condition, "type", ""), "Succeeded") != 0)
            continue;
        CHECK(result_is(i, "Succeeded"), "a success is not counted");
        CHECK(best <= strtod(json_string_at(metric, "value", ""), NULL), "a better trial was left out");
    }
}

static void check_end(void)
{
    CHECK(has_ended(), "it never ends");
    for (int i = 0; i < TRIALS; i++) {
        CHECK(model.created[i] == 1, "a trial was left out");
        CHECK(result_is(i, "Succeeded") != result_is(i, "Failed"), "a trial is counted twice, or not at all");
    }
    check_best();
}

static void run_schedule(uint64_t seed, const char *spec)
{
    model = (struct model){.seed = seed,
                           .random = seed * 2654435769u + 1,
                           .late = -1,
                           .sweep = yaml_value(spec),
                           .records = strcmp(spec, TPE) == 0};
    set_version();
    operator_is_killed();
    for (int step = 0; step < STEPS && !has_ended(); step++) {
        something_happens();
        if (draw(3) > 0)
            operator_turns();
    }
    model.calm = true;
    toggle_suspend();
    for (int step = 0; step < CALM_STEPS && !has_ended(); step++) {
        something_happens();
        operator_turns();
    }
    check_end();
    for (int i = 0; i < TRIALS; i++) {
        json_free(model.trials[i]);
        json_free(model.cached_trials[i]);
    }
    json_free(model.cached_sweep);
    json_free(model.sweep);
}

Test(sweep_replay, no_trial_is_started_twice_and_none_is_lost)
{
    for (uint64_t seed = 1; seed <= SCHEDULES; seed++)
        run_schedule(seed, GRID);
}

Test(sweep_replay, values_that_follow_from_results_are_drawn_once)
{
    for (uint64_t seed = 1; seed <= SCHEDULES; seed++)
        run_schedule(seed, TPE);
}
