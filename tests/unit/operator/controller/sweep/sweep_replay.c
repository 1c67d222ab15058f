/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan against a model of a cluster: trials that end and are deleted at random, caches that lag, and an operator that is killed
 * before or after any single write, with a create still on the wire. At every create it is checked that the trial was promised
 * and never existed before, and that no more run than may; each sweep has to come to its end, with the best of its trials. With TPE,
 * whose values follow from earlier results, what is recorded of a trial must never change, and its job must have those values.
 * With early stopping, trials report values on their way: a value that is recorded must never change, no trial may be suspended before
 * the status says that it is stopped, and one of which it says so must not run on. With pauses, a trial may be resumed only after the
 * status says that it goes on, and must then come on; a trial that waits at its rungs never passes one; in the end none may wait that is
 * among the best of its rung.
 * With Random and TPE over few values no two trials may have the same, and the sweep has to end when all were tried.
 * With PBT a parent that is recorded must never change, must have succeeded, and the trial's job must go on from it.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/contract/labels.h"
#include "common/memory.h"
#include "operator/controller/plan/index_set.h"
#include "operator/controller/sweep/early_stopping.h"
#include "operator/controller/sweep/promotion.h"
#include "operator/controller/sweep/sweep_plan.h"
#include "operator/controller/sweep/trial_build.h"
#include "sweep_scene.h"
#include "tests/unit/sanitized.h"

#define SCHEDULES (IS_SANITIZED ? 40 : 120)
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
/* No more combinations than trials in all schedules; maxTrials asks for more. */
#define RANDOM                                                                                                         \
    SWEEP_HEAD "  algorithm: {type: Random}\n  maxTrials: 100\n  parallelism: 2\n  maxFailedTrials: 6\n"               \
               "  parameters: [{path: coxswain.training.batchSize, integer: {min: 11, max: 16}}]\n"
#define SMALL_TPE                                                                                                      \
    SWEEP_HEAD "  algorithm: {type: TPE, startupTrials: 1}\n  maxTrials: 100\n  parallelism: 2\n"                      \
               "  maxFailedTrials: 6\n"                                                                                \
               "  parameters: [{path: coxswain.training.batchSize, integer: {min: 11, max: 16}}]\n"
#define ASHA                                                                                                           \
    SWEEP_HEAD "  algorithm: {type: Grid}\n  parallelism: 2\n  maxFailedTrials: 6\n"                                   \
               "  earlyStopping: {type: ASHA, minSteps: 2, reductionFactor: 2}\n"                                      \
               "  parameters: [{path: coxswain.training.batchSize, integer: {min: 11, max: 16}}]\n"
#define MEDIAN                                                                                                         \
    SWEEP_HEAD "  algorithm: {type: TPE, startupTrials: 1}\n  maxTrials: 6\n  parallelism: 2\n  maxFailedTrials: 6\n"  \
               "  earlyStopping: {type: Median, minSteps: 2, startupTrials: 1}\n"                                      \
               "  parameters: [{path: coxswain.training.batchSize, integer: {min: 11, max: 1000000}}]\n"
#define PAUSING                                                                                                        \
    SWEEP_HEAD "      checkpoint: {storage: runs}\n    storage: [{name: runs, hostPath: {path: /runs}}]\n"             \
               "  algorithm: {type: Grid}\n  parallelism: 2\n  maxFailedTrials: 6\n"                                   \
               "  earlyStopping: {type: ASHA, minSteps: 2, reductionFactor: 2, action: Pause}\n"                       \
               "  parameters: [{path: coxswain.training.batchSize, integer: {min: 11, max: 16}}]\n"
/* Bracket 0 has trials 0, 1, 4 and 5, the other one 2 and 3. */
#define BRACKETS                                                                                                       \
    SWEEP_HEAD "  algorithm: {type: Grid}\n  parallelism: 2\n  maxFailedTrials: 6\n"                                   \
               "  earlyStopping: {type: Hyperband, minSteps: 2, reductionFactor: 2, brackets: 2}\n"                    \
               "  parameters: [{path: coxswain.training.batchSize, integer: {min: 11, max: 16}}]\n"
#define PAUSING_BRACKETS                                                                                               \
    SWEEP_HEAD "      checkpoint: {storage: runs}\n    storage: [{name: runs, hostPath: {path: /runs}}]\n"             \
               "  algorithm: {type: Grid}\n  parallelism: 2\n  maxFailedTrials: 6\n"                                   \
               "  earlyStopping: {type: Hyperband, minSteps: 2, reductionFactor: 2, brackets: 2, action: Pause}\n"     \
               "  parameters: [{path: coxswain.training.batchSize, integer: {min: 11, max: 16}}]\n"
/* With a metric that our worker always measures, so that the trials wait at their rungs. */
#define WAITING PAUSING "  objective: {metric: loss}\n"
#define WAITING_BRACKETS PAUSING_BRACKETS "  objective: {metric: loss}\n"
/* Three generations of two. */
#define POPULATION                                                                                                     \
    SWEEP_HEAD "      checkpoint: {storage: runs}\n    storage: [{name: runs, hostPath: {path: /runs}}]\n"             \
               "  algorithm: {type: PBT, population: 2}\n  maxTrials: 6\n  parallelism: 2\n  maxFailedTrials: 6\n"     \
               "  parameters: [{path: coxswain.training.batchSize, integer: {min: 11, max: 1000000}}]\n"
#define STEPS_OF_A_TRIAL 10

struct model {
    uint64_t random, seed;
    struct json *sweep; /* as the API server has it */
    int64_t version;
    struct json *trials[TRIALS]; /* NULL: there is no such job */
    int created[TRIALS];
    bool counted[TRIALS];     /* a status once said that it was seen */
    int64_t parents[TRIALS];  /* that a status first had, and one more; 0: none has one */
    int64_t recorded[TRIALS]; /* the batch size that a status first had; 0: none has one */
    int64_t steps[TRIALS];    /* that it has done */
    char *rungs[TRIALS];      /* the values that a status last had; NULL: none */
    bool stopping[TRIALS];    /* a status has said that it is stopped, and none since that it goes on */
    int late;                 /* the trial whose create is on the wire while its operator is dead; -1: none */
    /* the operator's memory */
    struct json *cached_sweep, *cached_trials[TRIALS];
    bool must_see; /* an own write, which the caches have to show before the next plan */
    struct trial_note notes[TRIALS];
    size_t note_count;
    bool calm;
    bool breeds;                 /* PBT: trials go on from others */
    int bred;                    /* trials of all schedules that go on from another member */
    bool records;                /* TPE, PBT: the status has the trials' values */
    bool exhausts;               /* each trial has another batch size, and together they have all that there are */
    int64_t batch_sizes[TRIALS]; /* with which a trial was created; 0: it was not */
    bool stops;                  /* trials are stopped early, or paused */
    bool pauses;
    bool waits;   /* at the rungs */
    int stopped;  /* trials of all schedules that were, or stay paused */
    bool raises;  /* the sweep begins with low limits, which are raised later, often after it has ended */
    int reopened; /* how often, in all schedules, a sweep went on after its end */
    int promoted; /* how often, in all schedules, one that was paused went on */
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

/* The state of a trial; "": it runs. */
static const char *state_of(const struct json *trial)
{
    return json_string_at(json_first(json_at(trial, "status.conditions")), "type", "");
}

static bool is_over(const struct json *trial)
{
    return strcmp(state_of(trial), "Succeeded") == 0 || strcmp(state_of(trial), "Failed") == 0;
}

static void set_state(struct json *trial, const char *state)
{
    struct json *list = json_set(json_set_object(trial, "status"), "conditions", json_new_array());
    struct json *condition = json_append(list, json_new_object());
    json_set_string(condition, "type", state);
    json_set_string(condition, "status", "True");
    json_set_string(condition, "message", "why");
    if (strcmp(state, "Failed") == 0 && draw(2) == 0)
        json_set_string(condition, "reason", "Diverged");
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

/* One whose loss is not finite has failed, too, and counts as diverged. */
static bool has_failed(int64_t trial)
{
    return result_is(trial, "Failed") || result_is(trial, "Diverged");
}

static void check_divergence(int64_t trial)
{
    const struct json *condition = json_first(json_at(model.trials[trial], "status.conditions"));
    bool diverged = strcmp(json_string_at(condition, "reason", ""), "Diverged") == 0;
    CHECK(!condition || !is_over(model.trials[trial]) || diverged == result_is(trial, "Diverged"),
          "a trial that diverged is not counted so, or another is");
}

static bool state_has(const char *set, int64_t trial)
{
    char path[64];
    struct arena arena = {0};
    struct index_set members = index_set_make(&arena, TRIALS);
    snprintf(path, sizeof path, "status.controllerState.%s", set);
    index_set_parse(&members, json_string_at(model.sweep, path, NULL));
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

/* No two trials have the same values. */
static void check_batch_size(int64_t trial)
{
    model.batch_sizes[trial] = json_integer_at(model.trials[trial], "spec.coxswain.training.batchSize", 0);
    for (int64_t i = 0; model.exhausts && i < TRIALS; i++)
        CHECK(i == trial || model.batch_sizes[i] != model.batch_sizes[trial], "two trials have the same values");
}

static void check_records(int64_t started)
{
    for (int64_t i = 0; model.records && i < started; i++) {
        CHECK(record_of(i) != 0, "a trial is promised without values");
        CHECK(model.recorded[i] == 0 || model.recorded[i] == record_of(i), "recorded values change");
        model.recorded[i] = record_of(i);
    }
}

/* `after` has every value of `before`. */
static bool keeps_values(const char *before, const char *after)
{
    struct trial_record old = {.rungs = before}, new = {.rungs = after};
    for (int rung = 0; rung < 4; rung++) {
        double value = early_stopping_value(&old, rung);
        if (!isnan(value) && value != early_stopping_value(&new, rung))
            return false;
    }
    return true;
}

static void check_rungs(const struct sweep_status *status)
{
    for (int64_t i = 0; i < status->result_count; i++) {
        CHECK(keeps_values(model.rungs[i], status->results[i].rungs), "the value at a rung changes");
        free(model.rungs[i]);
        model.rungs[i] = memory_copy_string(status->results[i].rungs);
        bool goes_on = model.pauses && state_has("promoted", i) && result_is(i, "Running");
        CHECK(!model.stopping[i] || state_has("stopping", i) || !result_is(i, "Running") || goes_on,
              "a decision is forgotten");
        model.promoted += model.stopping[i] && goes_on;
        model.stopping[i] = state_has("stopping", i) || result_is(i, "Stopped") || result_is(i, "Paused");
    }
}

/* A trial goes on from one that has succeeded, and from the same whatever happens. */
static void check_parents(const struct sweep_status *status)
{
    for (int64_t i = 0; model.breeds && i < status->result_count; i++) {
        int64_t parent = status->results[i].parent;
        CHECK(model.parents[i] == 0 || model.parents[i] == parent + 1, "a parent changes");
        if (parent == FIELD_UNSET) {
            CHECK(i < 2 || status->results[i].state == TRIAL_FAILED, "a trial of a later generation has no parent");
            continue;
        }
        CHECK(parent / 2 == i / 2 - 1, "a parent is not of the generation before");
        CHECK(status->results[parent].state == TRIAL_SUCCEEDED, "a parent has not succeeded");
        model.bred += model.parents[i] == 0 && parent != i - 2;
        model.parents[i] = parent + 1;
    }
}

static void check_built(int64_t trial)
{
    SCOPED_FREE char *wanted =
        model.parents[trial] > 0 ? memory_format("s-%" PRId64 "-u", model.parents[trial] - 1) : NULL;
    const char *path = json_string_at(model.trials[trial], "spec.coxswain.init.path", NULL);
    CHECK(!model.breeds || (wanted ? path && strcmp(path, wanted) == 0 : path == NULL),
          "a trial goes on from another than its parent");
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
        check_batch_size(trial);
        check_built(trial);
    }
    for (int i = 0; i < TRIALS; i++)
        running += model.trials[i] && !is_over(model.trials[i]) && !result_is(i, "Stopped") && !result_is(i, "Paused");
    CHECK(running <= PARALLELISM, "too many trials run");
    training_sweep_release(&sweep);
}

/* Those that the status counts as running are no more than may. */
static void check_parallelism(const struct sweep_status *status)
{
    int running = 0;
    for (unsigned i = 0; i < status->result_count; i++)
        running += status->results[i].state == TRIAL_RUNNING;
    CHECK(running <= PARALLELISM, "too many trials are to run");
}

static bool sweep_is_suspending(void)
{
    const struct json *list = json_at(model.sweep, "status.conditions");
    for (const struct json *item = json_first(list); item; item = json_next(item))
        if (strcmp(json_string_at(item, "type", ""), "Suspended") == 0)
            return true;
    return false;
}

static void server_suspend(int64_t trial, bool suspend)
{
    CHECK(!suspend || state_has("stopping", trial) || sweep_is_suspending(), "a trial is suspended too early");
    CHECK(suspend || !model.stopping[trial], "a trial is resumed that is stopped");
    if (!model.trials[trial])
        return;
    struct training_sweep sweep = sweep_of(model.cached_sweep);
    SCOPED_JSON *patch = trial_suspend_patch(&sweep, trial, suspend);
    const struct json *step = json_member(json_at(patch, "metadata.annotations"), ANNOTATION_PAUSE_STEP);
    struct json *annotations = json_member(json_member(model.trials[trial], "metadata"), "annotations");
    CHECK(!model.waits || step != NULL, "a patch says nothing of the pause");
    if (annotations && json_string(step, NULL))
        json_set_string(annotations, ANNOTATION_PAUSE_STEP, json_string(step, NULL));
    else if (annotations)
        json_remove(annotations, ANNOTATION_PAUSE_STEP);
    training_sweep_release(&sweep);
    json_set_boolean(json_member(model.trials[trial], "spec"), "suspend", suspend);
    if (!suspend && !is_over(model.trials[trial]))
        json_remove(json_set_object(model.trials[trial], "status"), "conditions");
}

static void set_version(void)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, ++model.version);
    json_set_string(json_member(model.sweep, "metadata"), "resourceVersion", text);
}

static bool is_ended_sweep(void)
{
    const struct json *list = json_at(model.sweep, "status.conditions");
    for (const struct json *item = json_first(list); item; item = json_next(item)) {
        const char *type = json_string_at(item, "type", "");
        if ((strcmp(type, "Complete") == 0 || strcmp(type, "Failed") == 0) &&
            strcmp(json_string_at(item, "status", ""), "True") == 0)
            return true;
    }
    return false;
}

/* Returns whether the write was taken: nobody has changed the sweep since the operator read it. */
static bool server_status(const char *version, const struct sweep_status *status)
{
    if (strcmp(json_string_at(model.sweep, "metadata.resourceVersion", ""), version) != 0)
        return false;
    bool was_over = is_ended_sweep();
    json_set(model.sweep, "status", sweep_status_to_json(status));
    model.reopened += was_over && !is_ended_sweep();
    for (int64_t i = 0; i < TRIALS; i++)
        model.counted[i] |= i < status->result_count && !state_has("pending", i);
    check_records(status->result_count);
    check_rungs(status);
    check_parents(status);
    check_parallelism(status);
    set_version();
    return true;
}

/* ---------------------------------------------------------------- what happens by itself */

static bool runs(int trial)
{
    const struct json *object = model.trials[trial];
    return object && *state_of(object) == '\0';
}

/* A trial that is being suspended runs until its pods are gone. */
static void lose_pods(int trial)
{
    if (runs(trial) && json_boolean_at(model.trials[trial], "spec.suspend", false))
        set_state(model.trials[trial], "Suspended");
}

/* The trial has come to this step, and tells a value. */
static void report(int trial, int64_t step)
{
    char text[16];
    snprintf(text, sizeof text, "%d", (int)draw(5));
    struct json *progress = json_set_object(json_set_object(model.trials[trial], "status"), "progress");
    struct json *metric = json_append(json_set(progress, "metrics", json_new_array()), json_new_object());
    model.steps[trial] = step;
    json_set_integer(progress, "step", step);
    json_set_integer(progress, "totalSteps", STEPS_OF_A_TRIAL);
    json_set_string(metric, "name", json_string_at(model.sweep, "spec.objective.metric", "validationLoss"));
    json_set_string(metric, "value", text);
    json_set_integer(metric, "step", step);
}

/* The step beyond which the trial does not go. */
static int64_t last_step(int trial)
{
    int64_t pause_step = training_job_pause_step(model.trials[trial]);
    CHECK(!model.waits || pause_step != FIELD_UNSET || json_boolean_at(model.trials[trial], "spec.suspend", false),
          "a trial does not wait at the next rung");
    return pause_step != FIELD_UNSET && pause_step < STEPS_OF_A_TRIAL ? pause_step : STEPS_OF_A_TRIAL;
}

/* A crew that starts over may go back. */
static void train(int trial)
{
    int64_t step = (model.steps[trial] + 2 + (int64_t)draw(5)) % STEPS_OF_A_TRIAL;
    if (runs(trial))
        report(trial, step < last_step(trial) ? step : last_step(trial));
}

/* One that waits may yet fail. */
static void end_trial(int trial)
{
    if (!runs(trial))
        return;
    bool fails = draw(4) == 0, waits = last_step(trial) < STEPS_OF_A_TRIAL;
    report(trial, last_step(trial));
    if (fails || !waits)
        set_state(model.trials[trial], fails ? "Failed" : "Succeeded");
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

/* Changes the limits of the spec, as a user does. In the end there are as many trials as in the other schedules. */
static void set_limits(int64_t trials, int64_t failures)
{
    struct json *spec = json_member(model.sweep, "spec"), *metadata = json_member(model.sweep, "metadata");
    json_set_integer(spec, "maxTrials", trials);
    json_set_integer(spec, "maxFailedTrials", failures);
    json_set_integer(metadata, "generation", json_integer_at(metadata, "generation", 0) + 1);
    set_version();
}

static void raise_limits(void)
{
    struct json *spec = json_member(model.sweep, "spec");
    int64_t trials = json_integer_at(spec, "maxTrials", 0), failures = json_integer_at(spec, "maxFailedTrials", 0);
    if (trials < TRIALS || failures < TRIALS)
        set_limits(trials < TRIALS ? trials + 1 : TRIALS, failures < TRIALS ? failures + 1 : TRIALS);
}

static void something_happens(void)
{
    if (model.raises && chance(6))
        raise_limits();
    if (chance(40) || model.calm)
        end_trial((int)draw(TRIALS));
    if (chance(50) || model.calm)
        lose_pods((int)draw(TRIALS));
    if (model.stops && (chance(80) || model.calm))
        train((int)draw(TRIALS));
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
    bool decided = !model.raises || (sweep.status.observed_generation == sweep.generation &&
                                     sweep.max_trials == TRIALS && sweep.max_failed_trials == TRIALS);
    training_sweep_release(&sweep);
    return decided && is_ended_sweep();
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

/* No trial waits that may go on; and none waits for nothing, while no other has come to its end. */
static void check_paused(void)
{
    struct training_sweep sweep = sweep_of(model.sweep);
    CHECK(!model.pauses || promotion_next(&sweep, sweep.status.results, sweep.status.result_count) < 0,
          "a trial waits that may go on");
    CHECK(!model.pauses || sweep.status.trials.paused == 0 || sweep.status.trials.succeeded > 0,
          "no trial has succeeded, and some wait");
    training_sweep_release(&sweep);
}

/* Whether a trial of a population has no parent: the generation before has failed, or never began. */
static bool has_died_out_before(int trial)
{
    int first = trial / 2 * 2;
    if (!model.breeds || first == 0 || trial < (int)json_count(json_at(model.sweep, "status.results")))
        return false;
    CHECK(model.created[trial] == 0, "a trial has no parent and was created");
    CHECK(has_died_out_before(first - 1) || (has_failed(first - 1) && has_failed(first - 2)), "a trial was left out");
    return true;
}

static void check_end(void)
{
    CHECK(has_ended(), "it never ends");
    for (int i = 0; i < TRIALS; i++) {
        bool held = result_is(i, "Stopped") || result_is(i, "Paused");
        if (has_died_out_before(i))
            continue;
        CHECK(model.created[i] == 1, "a trial was left out");
        CHECK(result_is(i, "Succeeded") || has_failed(i) || held, "a trial is not counted");
        check_divergence(i);
        CHECK(!held || !runs(i), "a trial runs on that was stopped");
        CHECK(result_is(i, model.pauses ? "Stopped" : "Paused") == false, "a trial is held back in the wrong way");
        model.stopped += held;
    }
    check_paused();
    check_best();
}

static void run_schedule_with(uint64_t seed, const char *spec, bool raises)
{
    model = (struct model){.seed = seed,
                           .random = seed * 2654435769u + 1,
                           .late = -1,
                           .sweep = yaml_value(spec),
                           .records = strcmp(spec, TPE) == 0 || strcmp(spec, SMALL_TPE) == 0 ||
                                      strcmp(spec, MEDIAN) == 0 || strcmp(spec, POPULATION) == 0,
                           .exhausts = strcmp(spec, RANDOM) == 0 || strcmp(spec, SMALL_TPE) == 0,
                           .breeds = strcmp(spec, POPULATION) == 0,
                           .bred = model.bred,
                           .stops = strstr(spec, "earlyStopping:") != NULL,
                           .pauses = strstr(spec, "action: Pause") != NULL,
                           .waits = strstr(spec, "metric: loss") != NULL,
                           .stopped = model.stopped,
                           .raises = raises,
                           .reopened = model.reopened,
                           .promoted = model.promoted};
    set_version();
    if (raises)
        set_limits(2, 0);
    operator_is_killed();
    for (int step = 0; step < STEPS && !has_ended(); step++) {
        something_happens();
        if (draw(3) > 0)
            operator_turns();
    }
    model.calm = true;
    if (raises)
        set_limits(TRIALS, TRIALS);
    toggle_suspend();
    for (int step = 0; step < CALM_STEPS && !has_ended(); step++) {
        something_happens();
        operator_turns();
    }
    check_end();
    for (int i = 0; i < TRIALS; i++) {
        json_free(model.trials[i]);
        json_free(model.cached_trials[i]);
        free(model.rungs[i]);
    }
    json_free(model.cached_sweep);
    json_free(model.sweep);
}

static void run_schedule(uint64_t seed, const char *spec)
{
    run_schedule_with(seed, spec, false);
}

/* All checks of sweeps whose limits are high from the start hold here, too. */
Test(sweep_replay, a_sweep_goes_on_when_its_limits_are_raised)
{
    static const char *const specs[] = {GRID, RANDOM, MEDIAN, WAITING};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        model.reopened = 0;
        for (uint64_t seed = 1; seed <= SCHEDULES; seed++)
            run_schedule_with(seed, specs[i], true);
        cr_expect_gt(model.reopened, SCHEDULES / 4, "a sweep went on %d times in %d schedules", model.reopened,
                     SCHEDULES);
    }
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

Test(sweep_replay, no_values_are_tried_twice)
{
    for (uint64_t seed = 1; seed <= SCHEDULES; seed++) {
        run_schedule(seed, RANDOM);
        run_schedule(seed, SMALL_TPE);
    }
}

static void expect_stops(const char *spec)
{
    model.stopped = 0;
    for (uint64_t seed = 1; seed <= SCHEDULES; seed++)
        run_schedule(seed, spec);
    cr_expect_gt(model.stopped, SCHEDULES / 4, "%d trials of %d were stopped", model.stopped, SCHEDULES * TRIALS);
}

Test(sweep_replay, trials_are_stopped_as_the_status_says)
{
    expect_stops(ASHA);
    expect_stops(MEDIAN);
    expect_stops(BRACKETS);
}

Test(sweep_replay, paused_trials_go_on_as_the_status_says)
{
    static const char *const specs[] = {PAUSING, PAUSING_BRACKETS, WAITING, WAITING_BRACKETS};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        model.promoted = 0;
        expect_stops(specs[i]);
        cr_expect_gt(model.promoted, SCHEDULES / 8, "trials went on %d times in %d schedules", model.promoted,
                     SCHEDULES);
    }
}

Test(sweep_replay, parents_of_a_population_are_chosen_once)
{
    model.bred = 0;
    for (uint64_t seed = 1; seed <= SCHEDULES; seed++)
        run_schedule(seed, POPULATION);
    cr_expect_gt(model.bred, SCHEDULES / 4, "%d trials of %d schedules went on from another member", model.bred,
                 SCHEDULES);
}
