/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/sweep/sweep_plan.h"

#include <stdio.h>
#include <string.h>

#include "common/job/enum_words.h"
#include "operator/controller/sweep/suggestion.h"
#include "operator/controller/sweep/trial_build.h"
#include "sweep_scene.h"

#define TRIALS_MAX 8
#define NOW_MS 1800000000000

/* A sweep with its trials, and the plan for them. */
struct scene {
    struct training_sweep sweep;
    struct trial_view *trials[TRIALS_MAX];
    size_t trial_count;
    struct trial_note notes[TRIALS_MAX];
    size_t note_count;
    const char *invalid, *obstacle;
    struct sweep_plan plan;
};

#define SPEC                                                                                                           \
    "  parallelism: 2\n  maxTrials: 4\n  maxFailedTrials: 1\n"                                                         \
    "  parameters: [{path: coxswain.training.batchSize, integer: {min: 10, max: 50}}]\n"

/* Results in YAML. */
#define RUNS "{state: Running}, "
#define SUCCEEDED "{state: Succeeded, objective: '1'}, "
#define FAILED "{state: Failed}, "

static struct scene scene_of(const char *status)
{
    SCOPED_JSON *object = yaml_value(SWEEP_HEAD SPEC);
    if (status)
        json_set(object, "status", yaml_value(status));
    return (struct scene){.sweep = sweep_of(object)};
}

/* `state`: a condition that is True, or "" */
static void add_trial(struct scene *scene, int number, const char *state, const char *metric, bool suspend)
{
    char yaml[1024];
    snprintf(yaml, sizeof yaml,
             "metadata: {name: s-%d, ownerReferences: [{kind: TrainingSweep, apiVersion: coxswain.dev/v1beta1, name: "
             "s, uid: u, controller: true}]}\n"
             "spec: {suspend: %s}\n"
             "status: {conditions: [{type: '%s', status: 'True', message: why}], progress: {metrics: [{name: "
             "validationLoss, value: '%s'}]}}\n",
             number, suspend ? "true" : "false", state, metric);
    SCOPED_JSON *object = yaml_value(yaml);
    scene->trials[scene->trial_count++] = trial_view_new(object);
}

static void note(struct scene *scene, int64_t trial, enum trial_note_kind kind, char *message)
{
    scene->notes[scene->note_count++] = (struct trial_note){trial, kind, message};
}

static void plan(struct scene *scene)
{
    struct sweep_input input = {
        .sweep = &scene->sweep,
        .invalid = scene->invalid,
        .trials = (const struct trial_view *const *)scene->trials,
        .trial_count = scene->trial_count,
        .notes = scene->notes,
        .note_count = scene->note_count,
        .obstacle = scene->obstacle,
        .now_ms = NOW_MS,
    };
    plan_sweep(&input, &scene->plan);
}

static void scene_end(struct scene *scene)
{
    sweep_plan_release(&scene->plan);
    for (size_t i = 0; i < scene->trial_count; i++)
        trial_view_free(scene->trials[i]);
    training_sweep_release(&scene->sweep);
}

/* "create 0, look 3" */
static void expect_actions(const struct scene *scene, const char *expected)
{
    static const char *const words[] = {[SWEEP_CREATE_TRIAL] = "create",
                                        [SWEEP_LOOK_FOR_TRIAL] = "look",
                                        [SWEEP_SUSPEND_TRIAL] = "suspend",
                                        [SWEEP_RESUME_TRIAL] = "resume",
                                        [SWEEP_DELETE] = "delete"};
    SCOPED_BUFFER text = BUFFER_INIT(4096);
    for (size_t i = 0; i < scene->plan.action_count; i++)
        buffer_format(&text, "%s%s %d", i > 0 ? ", " : "", words[scene->plan.actions[i].type],
                      (int)scene->plan.actions[i].trial);
    cr_expect_str_eq(buffer_text(&text), expected, "%s, not %s", buffer_text(&text), expected);
}

static void expect_set(const char *found, const char *expected)
{
    cr_expect_str_eq(found ? found : "", expected, "%s, not %s", found ? found : "none", expected);
}

/* "Succeeded Running": of each result */
static void expect_states(const struct scene *scene, const char *expected)
{
    SCOPED_BUFFER text = BUFFER_INIT(4096);
    for (unsigned i = 0; i < scene->plan.status.result_count; i++)
        buffer_format(&text, "%s%s", i > 0 ? " " : "", sweep_trial_state_words[scene->plan.status.results[i].state]);
    cr_expect_str_eq(buffer_text(&text), expected, "%s, not %s", buffer_text(&text), expected);
}

static void expect_condition(const struct scene *scene, enum sweep_condition type, enum condition_status status,
                             const char *reason)
{
    const struct condition *condition = &scene->plan.status.conditions[type];
    cr_expect_eq(condition->status, status);
    cr_expect_str_eq(condition->reason ? condition->reason : "", reason, "%s: %s",
                     condition->reason ? condition->reason : "", condition->message ? condition->message : "");
}

static void expect_event(const struct scene *scene, const char *reason, const char *words)
{
    for (size_t i = 0; i < scene->plan.event_count; i++)
        if (strcmp(scene->plan.events[i].reason, reason) == 0 && strstr(scene->plan.events[i].note, words))
            return;
    cr_expect(false, "no event %s with %s", reason, words);
}

/* ---------------------------------------------------------------- starting */

Test(sweep_plan, promises_trials_before_it_creates_them)
{
    struct scene scene = scene_of(NULL);
    plan(&scene);
    expect_actions(&scene, "");
    cr_expect(scene.plan.write_status);
    cr_expect_eq(scene.plan.status.result_count, 2);
    expect_set(scene.plan.status.pending, "0-1");
    cr_expect_eq(scene.plan.status.trials.total, 4);
    cr_expect_eq(scene.plan.status.trials.running, 2);
    cr_expect_eq(scene.plan.status.start_ms, NOW_MS);
    expect_condition(&scene, SWEEP_RUNNING, CONDITION_TRUE, "TrialsRunning");
    scene_end(&scene);
}

Test(sweep_plan, creates_what_is_promised)
{
    struct scene scene = scene_of("{results: [" RUNS RUNS "], controllerState: {pending: 0-1}}");
    plan(&scene);
    expect_actions(&scene, "create 0, create 1");
    expect_set(scene.plan.status.pending, "0-1");
    scene_end(&scene);
}

Test(sweep_plan, what_exists_is_no_longer_pending)
{
    struct scene scene = scene_of("{results: [" RUNS RUNS "], controllerState: {pending: 0-1}}");
    add_trial(&scene, 0, "", "", false);
    plan(&scene);
    expect_actions(&scene, "create 1");
    expect_set(scene.plan.status.pending, "1");
    scene_end(&scene);
}

Test(sweep_plan, starts_another_trial_when_one_is_over)
{
    struct scene scene = scene_of("{results: [" RUNS RUNS "]}");
    add_trial(&scene, 0, "Succeeded", "0.5", false);
    add_trial(&scene, 1, "Running", "", false);
    plan(&scene);
    expect_actions(&scene, "");
    cr_expect_eq(scene.plan.status.result_count, 3);
    expect_set(scene.plan.status.pending, "2");
    expect_states(&scene, "Succeeded Running Running");
    cr_expect_eq(scene.plan.status.trials.running, 2);
    cr_expect_eq(scene.plan.status.trials.succeeded, 1);
    scene_end(&scene);
}

Test(sweep_plan, says_why_a_trial_is_not_created)
{
    struct scene scene = scene_of("{results: [" RUNS RUNS "], controllerState: {pending: 0-1}}");
    scene.obstacle = "quota";
    plan(&scene);
    expect_actions(&scene, "create 0, create 1");
    expect_condition(&scene, SWEEP_RUNNING, CONDITION_FALSE, "TrialNotCreated");
    scene_end(&scene);
}

/* ---------------------------------------------------------------- what TPE records */

#define LEARNING                                                                                                       \
    SWEEP_HEAD "  parallelism: 2\n  maxTrials: 4\n  algorithm: {type: TPE, startupTrials: 1}\n"                        \
               "  parameters: [{path: coxswain.training.batchSize, integer: {min: 10, max: 50}},\n"                    \
               "    {path: coxswain.model.width, values: [16, 64]}]\n"

static struct scene learning_scene(const char *status)
{
    SCOPED_JSON *object = yaml_value(LEARNING);
    json_set(object, "status", yaml_value(status));
    return (struct scene){.sweep = sweep_of(object)};
}

Test(sweep_plan, records_values_with_the_promise)
{
    struct scene scene = learning_scene("{}");
    plan(&scene);
    expect_actions(&scene, "");
    cr_assert_eq(scene.plan.status.result_count, 2);
    for (int64_t trial = 0; trial < 2; trial++) {
        SCOPED_FREE char *values = suggestion_record(&scene.sweep, trial);
        cr_expect_str_eq(scene.plan.status.results[trial].values, values);
        cr_expect_null(scene.plan.status.results[trial].objective);
    }
    scene_end(&scene);
}

#define SMALL                                                                                                          \
    SWEEP_HEAD "  parallelism: 3\n  maxTrials: 9\n  algorithm: {type: Random}\n"                                       \
               "  parameters: [{path: coxswain.training.batchSize, values: [10, 20, 30]}]\n"

Test(sweep_plan, tries_each_combination_once)
{
    bool tried[3] = {false};
    SCOPED_JSON *object = yaml_value(SMALL);
    struct scene scene = {.sweep = sweep_of(object)};
    plan(&scene);
    cr_expect_eq(scene.plan.status.trials.total, 3);
    cr_assert_eq(scene.plan.status.result_count, 3);
    struct training_sweep started = scene.sweep;
    started.status = scene.plan.status;
    for (int64_t trial = 0; trial < 3; trial++) {
        struct error error = ERROR_INIT;
        SCOPED_JSON *job = NULL;
        cr_assert_eq(trial_build(&started, trial, &job, &error), 0, "%s", error.message);
        tried[json_integer_at(job, "spec.coxswain.training.batchSize", 0) / 10 - 1] = true;
    }
    cr_expect(tried[0] && tried[1] && tried[2]);
    scene_end(&scene);
}

Test(sweep_plan, ends_when_every_combination_was_tried)
{
    SCOPED_JSON *object = yaml_value(SMALL);
    json_set(object, "status",
             yaml_value("{best: {trial: s-0, objective: '1'}, results: [" SUCCEEDED SUCCEEDED SUCCEEDED "]}"));
    struct scene scene = {.sweep = sweep_of(object)};
    plan(&scene);
    expect_condition(&scene, SWEEP_COMPLETE, CONDITION_TRUE, "TrialsDone");
    expect_event(&scene, "TrialsDone",
                 "3 of 3 trials succeeded; the best is s-0 with validationLoss 1; the parameters have no other "
                 "combination of values, so the sweep ends before maxTrials 9");
    scene_end(&scene);
}

Test(sweep_plan, a_plan_starts_a_few_of_many_trials_and_the_next_one_more)
{
    SCOPED_JSON *object = yaml_value(
        SWEEP_HEAD
        "  parallelism: 50\n  maxTrials: 18\n  parameters: [{path: coxswain.training.batchSize, integer: {min: 10, "
        "max: 500}}]\n");
    struct scene scene = {.sweep = sweep_of(object)};
    plan(&scene);
    cr_assert_eq(scene.plan.status.result_count, 16);
    expect_set(scene.plan.status.pending, "0-15");
    struct scene next = {.sweep = scene.sweep}; /* borrows what the first plan has recorded */
    next.sweep.status = scene.plan.status;
    plan(&next);
    cr_expect_eq(next.plan.status.result_count, 18);
    expect_set(next.plan.status.pending, "0-17");
    sweep_plan_release(&next.plan);
    scene_end(&scene);
}

Test(sweep_plan, records_results_and_learns_from_them_at_once)
{
    struct scene scene = learning_scene("{results: [{values: '20,1'}, {values: '30,0'}]}");
    add_trial(&scene, 0, "Succeeded", "0.5", false);
    add_trial(&scene, 1, "Running", "", false);
    plan(&scene);
    const struct sweep_status *status = &scene.plan.status;
    cr_assert_eq(status->result_count, 3);
    cr_expect_str_eq(status->results[0].values, "20,1");
    cr_expect_str_eq(status->results[0].objective, "0.5");
    cr_expect_str_eq(status->results[1].values, "30,0");
    cr_expect_null(status->results[1].objective);
    struct training_sweep learned = scene.sweep;
    learned.status = *status;
    learned.status.result_count = 2;
    SCOPED_FREE char *expected = suggestion_record(&learned, 2);
    cr_expect_str_eq(status->results[2].values, expected);
    cr_expect_str_eq(status->best.parameters[0].value, "20");
    cr_expect_str_eq(status->best.parameters[1].value, "64");
    scene_end(&scene);
}

Test(sweep_plan, creates_a_trial_with_the_values_that_are_recorded)
{
    struct scene scene = learning_scene("{results: [{values: '37,1'}], controllerState: {pending: '0'}}");
    struct error error = ERROR_INIT;
    SCOPED_JSON *object = NULL;
    plan(&scene);
    expect_actions(&scene, "create 0");
    cr_assert_eq(trial_build(&scene.sweep, 0, &object, &error), 0, "%s", error.message);
    cr_expect_eq(json_integer_at(object, "spec.coxswain.training.batchSize", 0), 37);
    cr_expect_eq(json_integer_at(object, "spec.coxswain.model.width", 0), 64);
    scene_end(&scene);
}

Test(sweep_plan, a_failed_trial_keeps_its_values_and_has_no_result)
{
    struct scene scene = learning_scene("{results: [{values: '20,1'}]}");
    add_trial(&scene, 0, "Failed", "0.5", false);
    plan(&scene);
    cr_expect_str_eq(scene.plan.status.results[0].values, "20,1");
    cr_expect_null(scene.plan.status.results[0].objective);
    scene_end(&scene);
}

/* Somebody has edited the status: trials that are over without values teach nothing, and are not drawn again. */
Test(sweep_plan, results_without_values)
{
    struct scene scene = learning_scene("{results: [{state: Succeeded, objective: '1'}, {state: Failed}, {}]}");
    add_trial(&scene, 2, "Succeeded", "0.25", false);
    plan(&scene);
    expect_states(&scene, "Succeeded Failed Succeeded Running");
    cr_expect_str_eq(scene.plan.status.results[2].objective, "0.25");
    cr_expect_null(scene.plan.status.results[0].values);
    cr_expect_not_null(scene.plan.status.results[3].values);
    scene_end(&scene);
}

Test(sweep_plan, other_algorithms_record_results_and_no_values)
{
    struct scene scene = scene_of("{results: [" RUNS RUNS "]}");
    add_trial(&scene, 0, "Succeeded", "0.5", false);
    add_trial(&scene, 1, "Failed", "0.5", false);
    plan(&scene);
    expect_states(&scene, "Succeeded Failed Running Running");
    cr_expect_str_eq(scene.plan.status.results[0].objective, "0.5");
    cr_expect_null(scene.plan.status.results[1].objective);
    for (unsigned i = 0; i < scene.plan.status.result_count; i++)
        cr_expect_null(scene.plan.status.results[i].values);
    scene_end(&scene);
}

/* What etcd takes by default is 1.5 MiB, with the spec. */
Test(sweep_plan, the_longest_results_fit_into_an_object)
{
    static struct trial_record results[SWEEP_TRIALS_MAX];
    struct sweep_status status = {.results = results, .result_count = SWEEP_TRIALS_MAX};
    SCOPED_BUFFER text = BUFFER_INIT(16 * 1024 * 1024);
    for (int i = 0; i < SWEEP_TRIALS_MAX; i++)
        results[i] = (struct trial_record){.state = TRIAL_SUCCEEDED, .objective = "-1.2345678901234567e-100"};
    SCOPED_JSON *object = sweep_status_to_json(&status);
    cr_assert_eq(json_print(object, &text, NULL), 0);
    cr_expect_lt(text.length, 1024 * 1024, "%zu bytes", text.length);
}

/* ---------------------------------------------------------------- early stopping */

#define STOPPING                                                                                                       \
    SWEEP_HEAD "  parallelism: 2\n  maxTrials: 4\n  maxFailedTrials: 1\n"                                              \
               "  earlyStopping: {type: ASHA, minSteps: 4, reductionFactor: 2}\n"                                      \
               "  parameters: [{path: coxswain.training.batchSize, integer: {min: 10, max: 50}}]\n"

static struct scene stopping_scene(const char *status)
{
    SCOPED_JSON *object = yaml_value(STOPPING);
    json_set(object, "status", yaml_value(status));
    return (struct scene){.sweep = sweep_of(object)};
}

/* Adds the trial's job, whose status has this value of the metric, measured after `step` of its ten steps. */
static void add_report(struct scene *scene, int number, const char *state, int step, const char *value, bool suspend)
{
    char yaml[1024];
    snprintf(yaml, sizeof yaml,
             "metadata: {name: s-%d, ownerReferences: [{kind: TrainingSweep, apiVersion: coxswain.dev/v1beta1, name: "
             "s, uid: u, controller: true}]}\n"
             "spec: {suspend: %s}\n"
             "status: {conditions: [{type: '%s', status: 'True', message: why}], progress: {step: 10, totalSteps: 10, "
             "metrics: [{name: validationLoss, value: '%s', step: %d}]}}\n",
             number, suspend ? "true" : "false", state, value, step);
    SCOPED_JSON *object = yaml_value(yaml);
    scene->trials[scene->trial_count++] = trial_view_new(object);
}

Test(sweep_plan, says_that_it_stops_a_trial_before_it_does)
{
    struct scene scene = stopping_scene("{results: [{state: Running, rungs: '0.5'}, {state: Running}]}");
    add_report(&scene, 0, "Running", 5, "0.4", false);
    add_report(&scene, 1, "Running", 4, "0.75", false);
    plan(&scene);
    expect_actions(&scene, "");
    expect_states(&scene, "Running Running");
    expect_set(scene.plan.status.stopping, "1");
    cr_expect_str_eq(scene.plan.status.results[0].rungs, "0.5");
    cr_expect_str_eq(scene.plan.status.results[1].rungs, "0.75");
    cr_expect_str_eq(scene.plan.status.results[1].objective, "0.75");
    cr_expect_eq(scene.plan.status.results[1].step, 4);
    expect_event(
        &scene, "TrialStopped",
        "s-1 has validationLoss 0.75 after step 4: 1 of the 2 trials that reached this rung are better, and only 1 "
        "continue");
    scene_end(&scene);
}

#define DECIDED                                                                                                        \
    "{results: [{state: Running, rungs: '0.5'}, {state: Running, rungs: '0.75', objective: '0.75', step: 4}], "        \
    "controllerState: {stopping: '1'}}"

Test(sweep_plan, stops_a_trial_that_the_status_says_is_stopping)
{
    struct scene scene = stopping_scene(DECIDED);
    add_report(&scene, 0, "Running", 5, "0.4", false);
    add_report(&scene, 1, "Running", 6, "0.1", false);
    plan(&scene);
    expect_actions(&scene, "suspend 1");
    expect_states(&scene, "Running Running");
    cr_expect_eq(scene.plan.event_count, 0);
    cr_expect_str_eq(scene.plan.status.results[1].objective, "0.75", "it is what it was stopped for");
    scene_end(&scene);
}

Test(sweep_plan, a_trial_that_is_suspended_is_stopped_and_another_one_starts)
{
    struct scene scene = stopping_scene(DECIDED);
    add_report(&scene, 0, "Running", 5, "0.4", false);
    add_report(&scene, 1, "Suspended", 6, "0.1", true);
    plan(&scene);
    expect_actions(&scene, "");
    expect_states(&scene, "Running Stopped Running");
    expect_set(scene.plan.status.stopping, "");
    expect_set(scene.plan.status.pending, "2");
    cr_expect_eq(scene.plan.status.trials.stopped, 1);
    cr_expect_eq(scene.plan.status.trials.running, 2);
    cr_expect_str_eq(scene.plan.status.results[1].objective, "0.75");
    cr_expect_eq(scene.plan.status.results[1].step, 4);
    cr_expect_null(scene.plan.status.best.trial, "the best trial has succeeded");
    scene_end(&scene);
}

Test(sweep_plan, a_trial_that_still_has_pods_is_not_stopped_yet)
{
    struct scene scene = stopping_scene(DECIDED);
    add_report(&scene, 0, "Running", 5, "0.4", false);
    add_report(&scene, 1, "Running", 6, "0.1", true);
    plan(&scene);
    expect_actions(&scene, "");
    expect_states(&scene, "Running Running");
    expect_set(scene.plan.status.stopping, "1");
    scene_end(&scene);
}

Test(sweep_plan, a_trial_that_was_stopped_and_deleted_has_not_failed)
{
    struct scene scene = stopping_scene(DECIDED);
    add_report(&scene, 0, "Running", 5, "0.4", false);
    note(&scene, 1, TRIAL_NOTE_ABSENT, NULL);
    plan(&scene);
    expect_states(&scene, "Running Stopped Running");
    scene_end(&scene);
}

Test(sweep_plan, a_trial_that_ends_before_it_is_suspended_counts_as_it_ended)
{
    static const char *const ends[] = {"Succeeded", "Failed"};
    for (int i = 0; i < 2; i++) {
        struct scene scene = stopping_scene(DECIDED);
        char states[64];
        add_report(&scene, 0, "Running", 5, "0.4", false);
        add_report(&scene, 1, ends[i], 10, "0.1", false);
        plan(&scene);
        snprintf(states, sizeof states, "Running %s Running", ends[i]);
        expect_states(&scene, states);
        expect_set(scene.plan.status.stopping, "");
        expect_set(scene.plan.status.results[1].objective, i == 0 ? "0.1" : "");
        cr_expect_eq(scene.plan.status.results[1].step, FIELD_UNSET);
        scene_end(&scene);
    }
}

/* What it does to the job of a trial that is stopped, a person does at his own account. */
Test(sweep_plan, a_stopped_trial_that_is_resumed_is_left_alone)
{
    struct scene scene = stopping_scene("{results: [{state: Running, rungs: '0.5'}, {state: Stopped, rungs: '0.75', "
                                        "objective: '0.75', step: 4}, {state: Running}]}");
    add_report(&scene, 0, "Running", 5, "0.4", false);
    add_report(&scene, 1, "Succeeded", 10, "0.1", false);
    add_report(&scene, 2, "Running", 3, "0.9", false);
    plan(&scene);
    expect_actions(&scene, "");
    expect_states(&scene, "Running Stopped Running");
    cr_expect_null(scene.plan.status.best.trial);
    cr_expect(!scene.plan.write_status || scene.plan.status.trials.running == 2);
    scene_end(&scene);
}

Test(sweep_plan, a_trial_at_its_end_is_not_stopped)
{
    struct scene scene = stopping_scene("{results: [{state: Succeeded, rungs: '0.5,0.4'}, {state: Running}]}");
    add_report(&scene, 1, "Running", 10, "0.9", false);
    plan(&scene);
    expect_set(scene.plan.status.stopping, "");
    cr_expect_str_eq(scene.plan.status.results[1].rungs, ",0.9", "but others are compared with it");
    scene_end(&scene);
}

Test(sweep_plan, suspending_the_sweep_while_a_trial_is_stopped)
{
    struct scene scene = stopping_scene(
        "{conditions: [{type: Suspended, status: 'False', reason: Suspending}], results: [{state: Running}, {state: "
        "Running}], controllerState: {stopping: '1'}}");
    scene.sweep.suspend = true;
    add_report(&scene, 0, "Running", 1, "0.4", false);
    add_report(&scene, 1, "Running", 6, "0.9", false);
    plan(&scene);
    expect_actions(&scene, "suspend 1, suspend 0");
    scene_end(&scene);
}

Test(sweep_plan, is_complete_with_trials_that_were_stopped)
{
    struct scene scene = stopping_scene(
        "{best: {trial: s-0, objective: '0.5'}, results: [" SUCCEEDED FAILED
        "{state: Stopped}, {state: Running, objective: '1', step: 4}], controllerState: {stopping: '3'}}");
    add_report(&scene, 3, "Suspended", 4, "1", true);
    plan(&scene);
    expect_condition(&scene, SWEEP_COMPLETE, CONDITION_TRUE, "TrialsDone");
    expect_event(&scene, "TrialsDone", "1 of 4 trials succeeded, 2 were stopped early; the best is s-0");
    scene_end(&scene);
}

/* ---------------------------------------------------------------- pauses */

#define PAUSING                                                                                                        \
    SWEEP_HEAD "      checkpoint: {storage: runs}\n    storage: [{name: runs, hostPath: {path: /runs}}]\n"             \
               "  parallelism: 2\n  maxTrials: 4\n  maxFailedTrials: 1\n"                                              \
               "  earlyStopping: {type: ASHA, minSteps: 4, reductionFactor: 2, action: Pause}\n"                       \
               "  parameters: [{path: coxswain.training.batchSize, integer: {min: 10, max: 50}}]\n"
#define PAUSED(value) "{state: Paused, objective: '" value "', step: 4, rungs: '" value "'}, "

static struct scene pausing_scene(const char *status)
{
    SCOPED_JSON *object = yaml_value(PAUSING);
    json_set(object, "status", yaml_value(status));
    return (struct scene){.sweep = sweep_of(object)};
}

Test(sweep_plan, decides_in_the_status_that_a_trial_pauses)
{
    struct scene scene = pausing_scene("{results: [{state: Running}, {state: Running}]}");
    add_report(&scene, 0, "Running", 4, "0.5", false);
    add_report(&scene, 1, "Running", 3, "0.4", false);
    plan(&scene);
    expect_actions(&scene, "");
    expect_states(&scene, "Running Running");
    expect_set(scene.plan.status.stopping, "0");
    expect_event(&scene, "TrialPaused", "0 of the 1 trials that reached this rung are better, and only 0 continue");
    scene_end(&scene);
}

/* New pods alone get to know how far they may go. */
Test(sweep_plan, a_trial_that_waits_at_a_rung_pauses_even_if_it_is_among_the_best)
{
    static const char status[] = "{results: [{state: Running}, " PAUSED("0.7") "]}";
    struct scene scene = pausing_scene(status);
    add_report(&scene, 0, "Running", 4, "0.5", false);
    add_report(&scene, 1, "Suspended", 4, "0.7", true);
    plan(&scene);
    expect_set(scene.plan.status.stopping, "");
    scene_end(&scene);

    scene = pausing_scene(status);
    add_report(&scene, 0, "Running", 4, "0.5", false);
    scene.trials[0]->pause_step = 4;
    add_report(&scene, 1, "Suspended", 4, "0.7", true);
    plan(&scene);
    expect_set(scene.plan.status.stopping, "0");
    expect_event(&scene, "TrialPaused", "among the best that reached this rung, and continues from its checkpoint");
    scene_end(&scene);
}

Test(sweep_plan, a_trial_is_paused_once_its_job_has_no_pods)
{
    static const char status[] = "{results: [{state: Running, objective: '0.5', step: 4, rungs: '0.5'}, {state: "
                                 "Running}], controllerState: {stopping: '0'}}";
    struct scene scene = pausing_scene(status);
    add_report(&scene, 0, "Running", 5, "0.5", false);
    add_report(&scene, 1, "Running", 3, "0.4", false);
    plan(&scene);
    expect_actions(&scene, "suspend 0");
    expect_states(&scene, "Running Running");
    scene_end(&scene);

    scene = pausing_scene(status);
    add_report(&scene, 0, "Suspended", 5, "0.5", true);
    add_report(&scene, 1, "Running", 3, "0.4", false);
    plan(&scene);
    expect_actions(&scene, "");
    expect_states(&scene, "Paused Running Running");
    expect_set(scene.plan.status.stopping, "");
    expect_set(scene.plan.status.pending, "2");
    cr_expect_str_eq(scene.plan.status.results[0].objective, "0.5");
    cr_expect_eq(scene.plan.status.trials.paused, 1);
    scene_end(&scene);
}

/* A person, or Kueue, suspends the job of a trial that waits at its rung. If the job kept the step, whoever resumed it would get one that
 * waits for ever. */
Test(sweep_plan, a_trial_is_not_paused_before_its_job_has_lost_the_step)
{
    static const char status[] = "{results: [{state: Running, objective: '0.5', step: 4, rungs: '0.5'}, {state: "
                                 "Running}], controllerState: {stopping: '0'}}";
    struct scene scene = pausing_scene(status);
    add_report(&scene, 0, "Suspended", 4, "0.5", true);
    scene.trials[0]->pause_step = 4;
    add_report(&scene, 1, "Running", 3, "0.4", false);
    plan(&scene);
    expect_actions(&scene, "suspend 0");
    expect_states(&scene, "Running Running");
    scene_end(&scene);
}

Test(sweep_plan, a_place_goes_to_a_paused_trial_before_a_new_one)
{
    struct scene scene = pausing_scene("{results: [" PAUSED("0.5") PAUSED("0.7") "{state: Running}]}");
    add_report(&scene, 0, "Suspended", 5, "0.5", true);
    add_report(&scene, 1, "Suspended", 5, "0.7", true);
    add_report(&scene, 2, "Running", 3, "0.9", false);
    plan(&scene);
    expect_actions(&scene, "");
    expect_states(&scene, "Running Paused Running");
    expect_set(scene.plan.status.promoted, "0");
    cr_expect_null(scene.plan.status.results[0].objective);
    cr_expect_str_eq(scene.plan.status.results[0].rungs, "0.5");
    expect_event(&scene, "TrialPromoted", "s-0 goes on after its pause at step 4");
    scene_end(&scene);
}

Test(sweep_plan, resumes_the_job_that_the_status_lists_as_promoted)
{
    static const char status[] = "{results: [{state: Running, rungs: '0.5'}, " PAUSED(
        "0.7") "{state: Running}], controllerState: {promoted: '0'}}";
    struct scene scene = pausing_scene(status);
    add_report(&scene, 0, "Suspended", 9, "0.1", true);
    add_report(&scene, 1, "Suspended", 5, "0.7", true);
    add_report(&scene, 2, "Running", 3, "0.9", false);
    plan(&scene);
    expect_actions(&scene, "resume 0");
    expect_set(scene.plan.status.promoted, "0");
    cr_expect_str_eq(scene.plan.status.results[0].rungs, "0.5", "it is not judged before it runs");
    scene_end(&scene);

    scene = pausing_scene(status);
    add_report(&scene, 0, "Suspended", 5, "0.5", false);
    add_report(&scene, 1, "Suspended", 5, "0.7", true);
    add_report(&scene, 2, "Running", 3, "0.9", false);
    plan(&scene);
    expect_actions(&scene, "");
    expect_set(scene.plan.status.promoted, "");
    scene_end(&scene);

    scene = pausing_scene(status);
    scene.sweep.suspend = true;
    add_report(&scene, 0, "Suspended", 5, "0.5", true);
    add_report(&scene, 1, "Suspended", 5, "0.7", true);
    add_report(&scene, 2, "Suspended", 3, "0.9", true);
    plan(&scene);
    expect_actions(&scene, "");
    expect_set(scene.plan.status.promoted, "0");
    expect_condition(&scene, SWEEP_SUSPENDED, CONDITION_TRUE, "Suspended");
    scene_end(&scene);
}

Test(sweep_plan, resuming_the_sweep_leaves_paused_trials_alone)
{
    struct scene scene = pausing_scene(
        "{conditions: [{type: Suspended, status: 'True'}], results: [" PAUSED("0.5") "{state: Running}]}");
    add_report(&scene, 0, "Suspended", 5, "0.5", true);
    add_report(&scene, 1, "Suspended", 3, "0.9", true);
    plan(&scene);
    expect_actions(&scene, "resume 1");
    scene_end(&scene);
}

Test(sweep_plan, is_complete_when_no_paused_trial_may_go_on)
{
    struct scene scene =
        pausing_scene("{best: {trial: s-0, objective: '0.3'}, results: [{state: Succeeded, objective: '0.3', rungs: "
                      "'0.5,0.4'}, " PAUSED("0.7")
                          PAUSED("0.8") "{state: Running, rungs: '0.9', objective: '0.9', step: 4}], controllerState: "
                                        "{stopping: '3'}}");
    scene.sweep.early_stopping.reduction_factor = 3;
    for (int i = 1; i < 4; i++)
        add_report(&scene, i, "Suspended", 5, "0.9", true);
    plan(&scene);
    expect_states(&scene, "Succeeded Paused Paused Paused");
    expect_condition(&scene, SWEEP_COMPLETE, CONDITION_TRUE, "TrialsDone");
    expect_event(&scene, "TrialsDone", "1 of 4 trials succeeded, 3 stay paused; the best is s-0");
    scene_end(&scene);
}

Test(sweep_plan, the_best_goes_on_rather_than_that_none_comes_to_its_end)
{
    struct scene scene = pausing_scene("{results: [" PAUSED("0.5") PAUSED("0.7") PAUSED("0.4") PAUSED("0.6") "]}");
    scene.sweep.early_stopping.reduction_factor = 5;
    for (int i = 0; i < 4; i++)
        add_report(&scene, i, "Suspended", 5, "0.9", true);
    plan(&scene);
    expect_states(&scene, "Paused Paused Running Paused");
    expect_condition(&scene, SWEEP_FAILED, CONDITION_ABSENT, "");
    scene_end(&scene);
}

Test(sweep_plan, what_a_person_does_with_a_paused_job)
{
    struct scene scene = pausing_scene("{results: [" PAUSED("0.5") PAUSED("0.7") PAUSED("0.8") "{state: Running}]}");
    scene.sweep.early_stopping.reduction_factor = 4;
    add_report(&scene, 0, "Succeeded", 10, "0.2", false);
    add_report(&scene, 1, "Running", 6, "0.6", false);
    add_report(&scene, 3, "Running", 3, "0.9", false);
    note(&scene, 2, TRIAL_NOTE_ABSENT, NULL);
    plan(&scene);
    expect_actions(&scene, "");
    expect_states(&scene, "Succeeded Paused Failed Running");
    cr_expect_str_eq(scene.plan.status.best.trial, "s-0");
    expect_event(&scene, "TrialFailed", "s-2: the job was deleted before it was over");
    scene_end(&scene);

    scene = pausing_scene("{results: [" PAUSED("0.5") "{state: Running}]}");
    add_report(&scene, 1, "Running", 3, "0.9", false);
    plan(&scene);
    expect_actions(&scene, "look 0");
    scene_end(&scene);
}

Test(sweep_plan, no_paused_trial_goes_on_once_the_budget_is_used)
{
    struct scene scene = pausing_scene("{best: {trial: s-2, objective: '0.3'}, results: [" PAUSED("0.5") PAUSED(
        "0.7") "{state: Succeeded, objective: '0.3', rungs: '0.9,0.3'}, {state: Succeeded, objective: '0.4', rungs: "
               "'0.8,0.4'}]}");
    add_report(&scene, 0, "Suspended", 5, "0.5", true);
    add_report(&scene, 1, "Suspended", 5, "0.7", true);
    plan(&scene);
    expect_states(&scene, "Running Running Succeeded Succeeded");
    sweep_plan_release(&scene.plan);

    scene.sweep.has_budget = true;
    scene.sweep.budget.worker_hours = 1;
    scene.sweep.status.worker_ms = 3600000;
    plan(&scene);
    expect_states(&scene, "Paused Paused Succeeded Succeeded");
    expect_condition(&scene, SWEEP_COMPLETE, CONDITION_TRUE, "BudgetUsed");
    scene_end(&scene);
}

/* Trials that wait at each rung are all paused when the budget is used, and none of them has failed. */
Test(sweep_plan, the_best_goes_on_even_if_the_budget_is_used_before_a_trial_has_come_to_its_end)
{
    struct scene scene = pausing_scene("{results: [" PAUSED("0.5") PAUSED("0.7") "]}");
    scene.sweep.has_budget = true;
    scene.sweep.budget.worker_hours = 1;
    scene.sweep.status.worker_ms = 3600000;
    add_report(&scene, 0, "Suspended", 5, "0.5", true);
    add_report(&scene, 1, "Suspended", 5, "0.7", true);
    plan(&scene);
    expect_states(&scene, "Running Paused");
    expect_condition(&scene, SWEEP_FAILED, CONDITION_ABSENT, "");
    scene_end(&scene);
}

Test(sweep_plan, pauses_need_checkpoints)
{
    SCOPED_JSON *object = yaml_value(PAUSING);
    json_remove(json_member(json_at(object, "spec.template"), "coxswain"), "checkpoint");
    struct scene scene = {.sweep = sweep_of(object)};
    plan(&scene);
    expect_condition(&scene, SWEEP_FAILED, CONDITION_TRUE, "InvalidSpec");
    cr_expect_not_null(strstr(scene.plan.status.conditions[SWEEP_FAILED].message, "coxswain.checkpoint: is missing"));
    scene_end(&scene);
}

/* ---------------------------------------------------------------- the best */

static void expect_best(const char *goal, const char *first, const char *second, const char *best)
{
    struct scene scene = scene_of("{results: [" RUNS RUNS "]}");
    scene.sweep.objective.goal = strcmp(goal, "Maximize") == 0 ? GOAL_MAXIMIZE : GOAL_MINIMIZE;
    add_trial(&scene, 1, "Succeeded", second, false);
    add_trial(&scene, 0, "Succeeded", first, false);
    plan(&scene);
    cr_expect_str_eq(scene.plan.status.best.trial, best, "%s of %s and %s", goal, first, second);
    scene_end(&scene);
}

Test(sweep_plan, finds_the_best)
{
    expect_best("Minimize", "0.5", "0.25", "s-1");
    expect_best("Minimize", "9", "10", "s-0");
    expect_best("Maximize", "9", "10", "s-1");
    expect_best("Maximize", "-1e-3", "-1", "s-0");
    expect_best("Minimize", "1", "1.0", "s-0");
}

Test(sweep_plan, an_earlier_best_stays_until_it_is_beaten)
{
    static const struct {
        const char *value, *best;
    } rows[] = {{"0.6", "s-1"}, {"0.5", "s-0"}, {"0.4", "s-0"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct scene scene = scene_of("{best: {trial: s-1, objective: '0.5'}, results: [" RUNS SUCCEEDED "]}");
        add_trial(&scene, 0, "Succeeded", rows[i].value, false);
        plan(&scene);
        cr_expect_str_eq(scene.plan.status.best.trial, rows[i].best, "%s", rows[i].value);
        scene_end(&scene);
    }
}

Test(sweep_plan, the_best_has_its_parameters)
{
    struct scene scene = scene_of("{results: [" RUNS "]}");
    add_trial(&scene, 0, "Succeeded", "0.5", false);
    plan(&scene);
    cr_assert_eq(scene.plan.status.best.parameter_count, 1);
    cr_expect_str_eq(scene.plan.status.best.parameters[0].name, "coxswain.training.batchSize");
    cr_expect_str_eq(scene.plan.status.best.objective, "0.5");
    int value = (int)strtol(scene.plan.status.best.parameters[0].value, NULL, 10);
    cr_expect(value >= 10 && value <= 50);
    scene_end(&scene);
}

/* ---------------------------------------------------------------- failures */

Test(sweep_plan, counts_failed_trials)
{
    struct scene scene = scene_of("{results: [" RUNS RUNS "]}");
    add_trial(&scene, 0, "Failed", "0.1", false);
    add_trial(&scene, 1, "Running", "", false);
    plan(&scene);
    expect_states(&scene, "Failed Running Running");
    cr_expect_null(scene.plan.status.best.trial);
    expect_event(&scene, "TrialFailed", "s-0: why");
    expect_set(scene.plan.status.pending, "2");
    scene_end(&scene);
}

static void add_diverged(struct scene *scene, int number)
{
    add_trial(scene, number, "Failed", "nan", false);
    scene->trials[scene->trial_count - 1]->diverged = true;
}

/* One trial may fail. */
Test(sweep_plan, trials_that_diverge_do_not_end_it)
{
    struct scene scene = scene_of("{results: [" FAILED RUNS RUNS RUNS "]}");
    for (int i = 1; i < 4; i++)
        add_diverged(&scene, i);
    scene.sweep.max_trials = 5;
    plan(&scene);
    expect_states(&scene, "Failed Diverged Diverged Diverged Running");
    cr_expect_eq(scene.plan.status.trials.diverged, 3);
    cr_expect_eq(scene.plan.status.trials.failed, 1);
    expect_condition(&scene, SWEEP_RUNNING, CONDITION_TRUE, "TrialsRunning");
    expect_event(&scene, "TrialDiverged", "s-2: why");
    scene_end(&scene);
}

Test(sweep_plan, the_end_counts_those_that_diverged)
{
    struct scene scene = scene_of("{results: [" FAILED RUNS RUNS RUNS "]}");
    add_diverged(&scene, 1);
    add_diverged(&scene, 2);
    add_trial(&scene, 3, "Succeeded", "0.5", false);
    plan(&scene);
    expect_condition(&scene, SWEEP_COMPLETE, CONDITION_TRUE, "TrialsDone");
    cr_expect(strstr(scene.plan.status.conditions[SWEEP_COMPLETE].message,
                     "1 of 4 trials succeeded, 2 diverged; the best is s-3 with validationLoss 0.5"));
    scene_end(&scene);
    scene = scene_of("{results: [" FAILED "{state: Diverged}, " RUNS RUNS "]}");
    add_diverged(&scene, 2);
    add_diverged(&scene, 3);
    plan(&scene);
    expect_condition(&scene, SWEEP_FAILED, CONDITION_TRUE, "NoTrialSucceeded");
    cr_expect_str_eq(scene.plan.status.conditions[SWEEP_FAILED].message,
                     "no trial has succeeded: 1 failed, 3 diverged; the events say why");
    scene_end(&scene);
}

Test(sweep_plan, a_success_without_the_metric_is_a_failure)
{
    struct scene scene = scene_of("{results: [" RUNS RUNS "]}");
    add_trial(&scene, 0, "Succeeded", "nan", false);
    add_trial(&scene, 1, "Succeeded", "1", false);
    plan(&scene);
    expect_states(&scene, "Failed Succeeded Running Running");
    expect_event(&scene, "TrialFailed", "no finite validationLoss");
    scene_end(&scene);
}

Test(sweep_plan, too_many_failures_end_it_once_the_others_are_suspended)
{
    struct scene scene = scene_of("{results: [" FAILED RUNS RUNS "]}");
    add_trial(&scene, 1, "Failed", "", false);
    add_trial(&scene, 2, "Running", "", false);
    plan(&scene);
    expect_actions(&scene, "");
    expect_condition(&scene, SWEEP_SUSPENDED, CONDITION_FALSE, "Suspending");
    cr_expect_eq(scene.plan.status.result_count, 3);
    scene_end(&scene);

    scene = scene_of(
        "{conditions: [{type: Suspended, status: 'False', reason: Suspending}], results: [" FAILED FAILED RUNS "]}");
    add_trial(&scene, 2, "Running", "", false);
    plan(&scene);
    expect_actions(&scene, "suspend 2");
    expect_condition(&scene, SWEEP_FAILED, CONDITION_ABSENT, "");
    scene_end(&scene);

    scene = scene_of("{results: [" FAILED FAILED RUNS "]}");
    add_trial(&scene, 2, "Suspended", "", true);
    plan(&scene);
    expect_actions(&scene, "");
    expect_condition(&scene, SWEEP_FAILED, CONDITION_TRUE, "TooManyFailedTrials");
    cr_expect_eq(scene.plan.status.completion_ms, NOW_MS);
    scene_end(&scene);
}

static void expect_ttl(const char *condition, int64_t ttl_seconds, int64_t ended_ms, const char *actions,
                       int64_t again_ms)
{
    char status[256];
    snprintf(
        status, sizeof status,
        "{observedGeneration: 1, conditions: [{type: %s, status: 'True', reason: TrialsDone}], results: [" SUCCEEDED
        "]}",
        condition);
    struct scene scene = scene_of(status);
    scene.sweep.ttl_seconds_after_finished = ttl_seconds;
    scene.sweep.status.completion_ms = ended_ms;
    plan(&scene);
    expect_actions(&scene, actions);
    cr_expect_not(scene.plan.write_status);
    cr_expect_eq(scene.plan.again_ms, again_ms);
    scene_end(&scene);
}

Test(sweep_plan, one_that_has_ended_is_deleted_when_its_ttl_has_passed)
{
    expect_ttl("Complete", 60, NOW_MS - 60000, "delete 0", 0);
    expect_ttl("Complete", 60, NOW_MS - 59000, "", NOW_MS + 1000);
    expect_ttl("Failed", 0, NOW_MS, "delete 0", 0);
    expect_ttl("Complete", FIELD_UNSET, NOW_MS - 60000, "", 0);

    struct scene scene = scene_of("{results: [" SUCCEEDED RUNS "]}");
    scene.sweep.ttl_seconds_after_finished = 0;
    add_trial(&scene, 1, "Running", "", false);
    plan(&scene);
    expect_actions(&scene, "");
    cr_expect_eq(scene.plan.again_ms, 0, "it has not ended");
    scene_end(&scene);
}

Test(sweep_plan, a_deleted_trial_is_looked_for_before_it_counts)
{
    struct scene scene = scene_of("{results: [" SUCCEEDED RUNS "]}");
    plan(&scene);
    expect_actions(&scene, "look 1");
    expect_states(&scene, "Succeeded Running Running");
    scene_end(&scene);

    scene = scene_of("{results: [" SUCCEEDED RUNS "]}");
    note(&scene, 1, TRIAL_NOTE_ABSENT, NULL);
    plan(&scene);
    expect_states(&scene, "Succeeded Failed Running Running");
    expect_event(&scene, "TrialFailed", "deleted");
    scene_end(&scene);
}

Test(sweep_plan, a_trial_that_was_seen_and_is_gone_is_not_created_again)
{
    struct scene scene = scene_of("{results: [" RUNS "], controllerState: {pending: '0'}}");
    note(&scene, 0, TRIAL_NOTE_SEEN, NULL);
    plan(&scene);
    expect_actions(&scene, "");
    expect_set(scene.plan.status.pending, "1");
    cr_expect_eq(scene.plan.status.result_count, 2);
    scene_end(&scene);
}

Test(sweep_plan, a_template_that_the_server_refuses_ends_it)
{
    struct scene scene = scene_of("{results: [" RUNS RUNS "], controllerState: {pending: 0-1}}");
    note(&scene, 1, TRIAL_NOTE_REFUSED, (char[]){"unknown field"});
    plan(&scene);
    expect_actions(&scene, "");
    expect_condition(&scene, SWEEP_FAILED, CONDITION_TRUE, "InvalidTemplate");
    cr_expect_str_eq(scene.plan.status.conditions[SWEEP_FAILED].message, "unknown field");
    cr_expect_eq(scene.plan.status.trials.running, 0, "no trial was created");
    expect_states(&scene, "");
    expect_set(scene.plan.status.pending, "");
    scene_end(&scene);
}

Test(sweep_plan, a_later_trial_that_the_server_refuses_has_failed)
{
    struct scene scene = scene_of("{results: [" RUNS RUNS "], controllerState: {pending: '1'}}");
    add_trial(&scene, 0, "Running", "", false);
    note(&scene, 1, TRIAL_NOTE_REFUSED, (char[]){"unknown field"});
    plan(&scene);
    expect_states(&scene, "Running Failed Running");
    expect_event(&scene, "TrialFailed", "s-1: unknown field");
    scene_end(&scene);
}

Test(sweep_plan, values_that_make_no_job)
{
    static const struct {
        const char *values;
        const char *states, *pending;
        enum condition_status ended;
    } rows[] = {
        {"[0, 10]", "", "", CONDITION_TRUE},
        {"[10, 0, 20]", "Running Failed Running", "0,2", CONDITION_ABSENT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char yaml[2048];
        snprintf(yaml, sizeof yaml,
                 SWEEP_HEAD "  algorithm: {type: Grid}\n  parallelism: 2\n  parameters: [{path: "
                            "coxswain.training.batchSize, values: %s}]\n",
                 rows[i].values);
        struct scene scene = {.sweep = sweep_from(yaml)};
        plan(&scene);
        expect_states(&scene, rows[i].states);
        expect_set(scene.plan.status.pending, rows[i].pending);
        expect_condition(&scene, SWEEP_FAILED, rows[i].ended, rows[i].ended == CONDITION_TRUE ? "InvalidSpec" : "");
        scene_end(&scene);
    }
}

#define POPULATION(checkpoint, training) POPULATION_IN("hostPath: {path: /runs}", checkpoint, training)
#define POPULATION_IN(volume, checkpoint, training)                                                                    \
    "metadata: {name: s, namespace: n, uid: u, resourceVersion: '7', generation: 1}\n"                                 \
    "spec:\n"                                                                                                          \
    "  template:\n"                                                                                                    \
    "    storage: [{name: other, emptyDir: {}}, {name: runs, " volume "}]\n"                                           \
    "    coxswain:\n"                                                                                                  \
    "      strategy: {type: OneDevice}\n"                                                                              \
    "      model: {preset: mlp}\n"                                                                                     \
    "      data: {format: Synthetic, examples: 1000}\n" checkpoint                                                     \
    "      training: {steps: 10, batchSize: 100, optimizer: {type: SGD" training "}}\n"                                \
    "  algorithm: {type: PBT, population: 2}\n  maxTrials: 4\n  parallelism: 4\n"                                      \
    "  parameters: [{path: coxswain.training.optimizer.learningRate, values: [0.1, 0.2]}]\n"

Test(sweep_plan, what_a_population_needs)
{
    static const struct {
        const char *yaml, *message;
    } rows[] = {
        {POPULATION("", ""), "coxswain.checkpoint: is missing"},
        {POPULATION("      checkpoint: {storage: runs, path: all}\n", ""),
         "checkpoint.path: each trial needs a folder of its own"},
        {POPULATION("      checkpoint: {storage: runs}\n", ", schedule: {type: Cosine}"), "take Constant"},
        {POPULATION_IN("emptyDir: {}", "      checkpoint: {storage: runs}\n", ""), "another volume for each pod"},
        {POPULATION_IN("ephemeral: {}", "      checkpoint: {storage: runs}\n", ""), "another volume for each pod"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct scene scene = {.sweep = sweep_from(rows[i].yaml)};
        plan(&scene);
        expect_condition(&scene, SWEEP_FAILED, CONDITION_TRUE, "InvalidSpec");
        cr_expect_not_null(strstr(scene.plan.status.conditions[SWEEP_FAILED].message, rows[i].message), "%s",
                           scene.plan.status.conditions[SWEEP_FAILED].message);
        scene_end(&scene);
    }
    struct scene scene = {.sweep = sweep_from(POPULATION("      checkpoint: {storage: runs}\n", ""))};
    plan(&scene);
    expect_states(&scene, "Running Running");
    scene_end(&scene);
}

static struct scene population_scene(const char *status)
{
    SCOPED_JSON *object = yaml_value(POPULATION("      checkpoint: {storage: runs}\n", ""));
    json_set(object, "status", yaml_value(status));
    struct scene scene = {.sweep = sweep_of(object)};
    scene.sweep.max_failed_trials = 9;
    return scene;
}

Test(sweep_plan, a_population_ends_when_a_whole_generation_has_failed)
{
    struct scene scene = population_scene("{results: [{state: Failed}, {state: Failed}]}");
    plan(&scene);
    expect_states(&scene, "Failed Failed");
    expect_condition(&scene, SWEEP_FAILED, CONDITION_TRUE, "GenerationFailed");
    cr_expect_str_eq(
        scene.plan.status.conditions[SWEEP_FAILED].message,
        "all trials of generation 0 (counted from 0) have failed or diverged, so the next generation has no checkpoint "
        "to continue from; the events of the trials say why");
    scene_end(&scene);

    scene = population_scene("{results: [{state: Failed}, {state: Succeeded, objective: '1', values: '0'}]}");
    plan(&scene);
    expect_states(&scene, "Failed Succeeded Running Running");
    expect_condition(&scene, SWEEP_FAILED, CONDITION_ABSENT, "");
    scene_end(&scene);
}

Test(sweep_plan, an_invalid_spec)
{
    struct scene scene = scene_of(NULL);
    scene.invalid = "spec.parameters: no";
    plan(&scene);
    expect_condition(&scene, SWEEP_FAILED, CONDITION_TRUE, "InvalidSpec");
    scene_end(&scene);

    scene = scene_of("{results: [" RUNS "], controllerState: {pending: '0'}}");
    scene.invalid = "spec.parameters: no";
    plan(&scene);
    expect_actions(&scene, "");
    expect_condition(&scene, SWEEP_FAILED, CONDITION_ABSENT, "");
    expect_condition(&scene, SWEEP_RUNNING, CONDITION_FALSE, "InvalidSpec");
    scene_end(&scene);
}

/* ---------------------------------------------------------------- the end */

Test(sweep_plan, is_complete_when_all_are_over)
{
    struct scene scene = scene_of(
        "{best: {trial: s-0, objective: '1'}, conditions: [{type: Running, status: 'True'}], results: [" SUCCEEDED
            SUCCEEDED FAILED RUNS "]}");
    add_trial(&scene, 3, "Succeeded", "0.5", false);
    plan(&scene);
    expect_actions(&scene, "");
    expect_condition(&scene, SWEEP_COMPLETE, CONDITION_TRUE, "TrialsDone");
    expect_condition(&scene, SWEEP_RUNNING, CONDITION_FALSE, "TrialsDone");
    expect_event(&scene, "TrialsDone", "3 of 4 trials succeeded; the best is s-3 with validationLoss 0.5");
    scene_end(&scene);
}

Test(sweep_plan, fails_when_no_trial_has_succeeded)
{
    struct scene scene = scene_of("{results: [" FAILED FAILED FAILED FAILED "]}");
    scene.sweep.max_failed_trials = 4;
    plan(&scene);
    expect_condition(&scene, SWEEP_FAILED, CONDITION_TRUE, "NoTrialSucceeded");
    scene_end(&scene);
}

Test(sweep_plan, ends_early_when_max_trials_is_lowered)
{
    struct scene scene = scene_of("{best: {trial: s-0, objective: '1'}, results: [" SUCCEEDED SUCCEEDED "]}");
    scene.sweep.max_trials = 1;
    plan(&scene);
    expect_condition(&scene, SWEEP_COMPLETE, CONDITION_TRUE, "TrialsDone");
    cr_expect_eq(scene.plan.status.trials.total, 2);
    scene_end(&scene);
}

Test(sweep_plan, does_nothing_about_one_that_is_over_or_deleted)
{
    static const char *const over[] = {"{type: Complete, status: 'True'}", "{type: Failed, status: 'True'}"};
    for (int i = 0; i < 2; i++) {
        char status[256];
        snprintf(status, sizeof status,
                 "{observedGeneration: 1, conditions: [%s], results: [" RUNS "], controllerState: {pending: '0'}}",
                 over[i]);
        struct scene scene = scene_of(status);
        plan(&scene);
        expect_actions(&scene, "");
        cr_expect(!scene.plan.write_status);
        scene_end(&scene);
    }
    struct scene scene = scene_of("{results: [" RUNS "], controllerState: {pending: '0'}}");
    scene.sweep.deleted_ms = NOW_MS;
    plan(&scene);
    expect_actions(&scene, "");
    cr_expect(!scene.plan.write_status);
    scene_end(&scene);
}

/* ---------------------------------------------------------------- a raised limit */

/* One trial may fail, and four are run. */
static struct scene ended_scene(const char *condition, const char *reason, const char *results)
{
    char status[1024];
    snprintf(status, sizeof status,
             "{observedGeneration: 1, completionTime: '2026-11-20T14:00:00Z', conditions: [{type: %s, status: 'True', "
             "reason: %s}, {type: Running, status: 'False', reason: %s}], results: [%s]}",
             condition, reason, reason, results);
    return scene_of(status);
}

static void change(struct scene *scene, int64_t max_trials, int64_t max_failed)
{
    scene->sweep.max_trials = max_trials;
    scene->sweep.max_failed_trials = max_failed;
    scene->sweep.generation++;
    plan(scene);
    expect_actions(scene, "");
    cr_expect(scene->plan.write_status);
    cr_expect_eq(scene->plan.status.observed_generation, 2);
}

Test(sweep_plan, goes_on_after_its_end_when_max_trials_is_raised)
{
    struct scene scene = ended_scene("Complete", "TrialsDone", SUCCEEDED SUCCEEDED FAILED SUCCEEDED);
    change(&scene, 6, 1);
    expect_condition(&scene, SWEEP_COMPLETE, CONDITION_FALSE, "LimitRaised");
    expect_condition(&scene, SWEEP_RUNNING, CONDITION_TRUE, "LimitRaised");
    cr_expect_eq(scene.plan.status.completion_ms, FIELD_UNSET);
    cr_expect_eq(scene.plan.status.trials.total, 6);
    expect_states(&scene, "Succeeded Succeeded Failed Succeeded");
    expect_event(&scene, "LimitRaised", "the sweep goes on");
    scene_end(&scene);
}

Test(sweep_plan, stays_over_when_the_change_leaves_nothing_to_do)
{
    static const char *const reasons[] = {"TrialsDone", "BudgetUsed"};
    for (int i = 0; i < 2; i++) {
        struct scene scene = ended_scene("Complete", reasons[i], SUCCEEDED SUCCEEDED FAILED SUCCEEDED);
        change(&scene, 4 - i, 3);
        expect_condition(&scene, SWEEP_COMPLETE, CONDITION_TRUE, reasons[i]);
        cr_expect_neq(scene.plan.status.completion_ms, FIELD_UNSET);
        scene_end(&scene);
    }
    struct scene scene = ended_scene("Failed", "TooManyFailedTrials", FAILED FAILED RUNS);
    change(&scene, 8, 1);
    expect_condition(&scene, SWEEP_FAILED, CONDITION_TRUE, "TooManyFailedTrials");
    scene_end(&scene);
    scene = ended_scene("Failed", "GenerationFailed", SUCCEEDED FAILED);
    change(&scene, 8, 3);
    expect_condition(&scene, SWEEP_FAILED, CONDITION_TRUE, "GenerationFailed");
    scene_end(&scene);
}

/* Whatever else has changed in the meantime, such as a paused trial whose job is gone. */
Test(sweep_plan, a_sweep_that_is_over_is_looked_at_once_for_each_change)
{
    struct scene scene = ended_scene("Complete", "TrialsDone", SUCCEEDED SUCCEEDED FAILED SUCCEEDED);
    scene.sweep.max_trials = 6;
    plan(&scene);
    cr_expect(!scene.plan.write_status);
    scene_end(&scene);
}

Test(sweep_plan, goes_on_after_failures_when_more_are_allowed)
{
    struct scene scene = ended_scene("Failed", "TooManyFailedTrials", FAILED FAILED RUNS);
    add_trial(&scene, 2, "Suspended", "", true);
    change(&scene, 4, 2);
    expect_condition(&scene, SWEEP_FAILED, CONDITION_FALSE, "LimitRaised");
    expect_condition(&scene, SWEEP_SUSPENDED, CONDITION_TRUE, "LimitRaised");
    expect_condition(&scene, SWEEP_RUNNING, CONDITION_FALSE, "LimitRaised");
    scene_end(&scene);
}

/* Which the status asks for once it no longer says that the sweep has failed. */
Test(sweep_plan, resumes_the_trials_that_the_end_has_suspended)
{
    struct scene scene =
        scene_of("{observedGeneration: 1, conditions: [{type: Failed, status: 'False', reason: LimitRaised}, {type: "
                 "Suspended, status: 'True', reason: LimitRaised}], results: [" FAILED RUNS "]}");
    add_trial(&scene, 1, "Suspended", "", true);
    plan(&scene);
    expect_actions(&scene, "resume 1");
    cr_expect_eq(scene.plan.status.result_count, 2, "no trial is started meanwhile");
    scene_end(&scene);
}

/* ---------------------------------------------------------------- suspending */

#define SUSPENDING                                                                                                     \
    "{conditions: [{type: Suspended, status: 'False', reason: Suspending}], results: [" RUNS RUNS RUNS "], "           \
    "controllerState: {pending: '2'}}"

Test(sweep_plan, says_that_it_suspends_before_it_does)
{
    struct scene scene = scene_of("{results: [" RUNS RUNS RUNS "], controllerState: {pending: '2'}}");
    scene.sweep.suspend = true;
    add_trial(&scene, 0, "Running", "", false);
    add_trial(&scene, 1, "Suspended", "", true);
    plan(&scene);
    expect_actions(&scene, "");
    expect_condition(&scene, SWEEP_SUSPENDED, CONDITION_FALSE, "Suspending");
    scene_end(&scene);

    scene = scene_of(SUSPENDING);
    scene.sweep.suspend = true;
    add_trial(&scene, 0, "Running", "", false);
    add_trial(&scene, 1, "Suspended", "", true);
    plan(&scene);
    expect_actions(&scene, "suspend 0");
    expect_condition(&scene, SWEEP_SUSPENDED, CONDITION_FALSE, "Suspending");
    scene_end(&scene);
}

Test(sweep_plan, is_suspended_when_all_trials_are)
{
    struct scene scene = scene_of(SUSPENDING);
    scene.sweep.suspend = true;
    add_trial(&scene, 0, "Running", "", true);
    add_trial(&scene, 1, "Suspended", "", true);
    plan(&scene);
    expect_actions(&scene, "");
    expect_condition(&scene, SWEEP_SUSPENDED, CONDITION_TRUE, "Suspended");
    expect_condition(&scene, SWEEP_RUNNING, CONDITION_FALSE, "Suspended");
    scene_end(&scene);
}

Test(sweep_plan, resumes_what_it_has_begun_to_suspend)
{
    struct scene scene = scene_of(SUSPENDING);
    add_trial(&scene, 0, "Running", "", true);
    add_trial(&scene, 1, "Running", "", false);
    plan(&scene);
    expect_actions(&scene, "resume 0");
    scene_end(&scene);
}

Test(sweep_plan, one_that_begins_suspended_starts_nothing)
{
    struct scene scene = scene_of(NULL);
    scene.sweep.suspend = true;
    plan(&scene);
    expect_actions(&scene, "");
    cr_expect_eq(scene.plan.status.result_count, 0);
    expect_condition(&scene, SWEEP_SUSPENDED, CONDITION_TRUE, "Suspended");
    scene_end(&scene);
}

#define SUSPENDED "{conditions: [{type: Suspended, status: 'True'}], results: [" RUNS RUNS "]}"

Test(sweep_plan, resumes_all_before_it_goes_on)
{
    struct scene scene = scene_of(SUSPENDED);
    add_trial(&scene, 0, "Suspended", "", true);
    add_trial(&scene, 1, "Running", "", false);
    plan(&scene);
    expect_actions(&scene, "resume 0");
    expect_condition(&scene, SWEEP_SUSPENDED, CONDITION_TRUE, "");
    scene_end(&scene);

    scene = scene_of(SUSPENDED);
    add_trial(&scene, 0, "Running", "", false);
    add_trial(&scene, 1, "Running", "", false);
    plan(&scene);
    expect_actions(&scene, "");
    expect_condition(&scene, SWEEP_SUSPENDED, CONDITION_FALSE, "Resumed");
    expect_condition(&scene, SWEEP_RUNNING, CONDITION_TRUE, "TrialsRunning");
    scene_end(&scene);
}

Test(sweep_plan, leaves_alone_what_a_person_has_suspended)
{
    struct scene scene = scene_of("{results: [" RUNS RUNS "]}");
    add_trial(&scene, 0, "Suspended", "", true);
    add_trial(&scene, 1, "Running", "", false);
    plan(&scene);
    expect_actions(&scene, "");
    cr_expect_eq(scene.plan.status.result_count, 2);
    scene_end(&scene);
}

/* ---------------------------------------------------------------- the budget */

/* A trial of two pods that began so many seconds ago; `end` follows the time it began. */
static void add_timed_trial(struct scene *scene, int number, const char *state, const char *times)
{
    char yaml[1024];
    snprintf(yaml, sizeof yaml,
             "metadata: {name: s-%d, ownerReferences: [{kind: TrainingSweep, apiVersion: coxswain.dev/v1beta1, name: "
             "s, uid: u, controller: true}]}\n"
             "spec: {workers: {replicas: 2}}\n"
             "status: {%s, conditions: [{type: '%s', status: 'True', message: why}], progress: {metrics: [{name: "
             "validationLoss, value: '1'}]}}\n",
             number, times, state);
    SCOPED_JSON *object = yaml_value(yaml);
    scene->trials[scene->trial_count++] = trial_view_new(object);
}

/* NOW_MS is 2027-01-15T08:00:00Z. */
#define HALF_AN_HOUR "startTime: '2027-01-15T07:00:00Z', completionTime: '2027-01-15T07:30:00Z'"
#define RUNS_FOR_AN_HOUR "startTime: '2027-01-15T07:00:00Z'"

static struct scene scene_with_budget(const char *hours, const char *status)
{
    SCOPED_JSON *object = yaml_value(SWEEP_HEAD SPEC);
    json_set(json_member(object, "spec"), "budget", yaml_value(hours));
    json_set(object, "status", yaml_value(status));
    return (struct scene){.sweep = sweep_of(object)};
}

Test(sweep_plan, trials_start_while_the_budget_lasts)
{
    struct scene scene = scene_with_budget("{workerHours: 3.001}", "{results: [" RUNS RUNS "]}");
    add_timed_trial(&scene, 0, "Succeeded", HALF_AN_HOUR);
    add_timed_trial(&scene, 1, "Running", RUNS_FOR_AN_HOUR);
    plan(&scene);
    cr_expect_eq(scene.plan.status.worker_ms, 3600000, "half an hour of two pods");
    cr_expect_eq(scene.plan.status.result_count, 3);
    cr_expect_eq(scene.plan.status.trials.total, 4);
    scene_end(&scene);
}

Test(sweep_plan, time_that_a_trial_was_suspended_is_not_taken_from_the_budget)
{
    struct scene scene = scene_with_budget("{workerHours: 3}", "{results: [" RUNS RUNS "]}");
    add_timed_trial(&scene, 0, "Succeeded", HALF_AN_HOUR ", controllerState: {suspendedMilliseconds: 600000}");
    add_timed_trial(&scene, 1, "Running", RUNS_FOR_AN_HOUR);
    plan(&scene);
    cr_expect_eq(scene.plan.status.worker_ms, 2400000, "20 minutes of two pods");
    cr_expect_eq(scene.plan.status.result_count, 3);
    scene_end(&scene);
}

Test(sweep_plan, no_trial_starts_once_the_budget_is_used)
{
    struct scene scene = scene_with_budget("{workerHours: 3}", "{results: [" RUNS RUNS "]}");
    add_timed_trial(&scene, 0, "Succeeded", HALF_AN_HOUR);
    add_timed_trial(&scene, 1, "Running", RUNS_FOR_AN_HOUR);
    plan(&scene);
    expect_actions(&scene, "");
    cr_expect_eq(scene.plan.status.result_count, 2);
    cr_expect_eq(scene.plan.status.trials.total, 2);
    expect_condition(&scene, SWEEP_RUNNING, CONDITION_TRUE, "TrialsRunning");
    scene_end(&scene);
}

/* The status knows what trials took whose jobs are gone. */
Test(sweep_plan, a_budget_that_is_used_completes_the_sweep)
{
    struct scene scene =
        scene_with_budget("{workerHours: 1.5}", "{workerMilliseconds: 3600000, best: {trial: s-0, objective: "
                                                "'1'}, results: [" SUCCEEDED RUNS "]}");
    add_timed_trial(&scene, 1, "Failed", HALF_AN_HOUR);
    plan(&scene);
    cr_expect_eq(scene.plan.status.worker_ms, 7200000);
    expect_states(&scene, "Succeeded Failed");
    expect_condition(&scene, SWEEP_COMPLETE, CONDITION_TRUE, "BudgetUsed");
    expect_event(&scene, "BudgetUsed", "the budget of worker time is used; 1 of 2 trials succeeded");
    scene_end(&scene);
}

Test(sweep_plan, goes_on_after_its_end_when_the_budget_is_raised)
{
    static const double hours[] = {1.9, 2.5};
    for (int i = 0; i < 2; i++) {
        struct scene scene = scene_with_budget(
            "{workerHours: 1.5}", "{observedGeneration: 1, workerMilliseconds: 7200000, conditions: [{type: Complete, "
                                  "status: 'True', reason: BudgetUsed}], results: [" SUCCEEDED SUCCEEDED "]}");
        scene.sweep.budget.worker_hours = hours[i];
        scene.sweep.generation = 2;
        plan(&scene);
        expect_condition(&scene, SWEEP_COMPLETE, i == 0 ? CONDITION_TRUE : CONDITION_FALSE,
                         i == 0 ? "BudgetUsed" : "LimitRaised");
        cr_expect(scene.plan.write_status);
        scene_end(&scene);
    }
}

Test(sweep_plan, the_last_trial_is_not_cut_off_by_the_budget)
{
    struct scene scene = scene_with_budget("{workerHours: 0.1}", "{results: [" SUCCEEDED SUCCEEDED SUCCEEDED RUNS "]}");
    add_timed_trial(&scene, 3, "Succeeded", HALF_AN_HOUR);
    plan(&scene);
    expect_condition(&scene, SWEEP_COMPLETE, CONDITION_TRUE, "TrialsDone");
    scene_end(&scene);
}

/* A thousand trials of a third of a second take minutes. */
Test(sweep_plan, trials_of_less_than_a_second_take_from_the_budget)
{
    struct scene scene = scene_with_budget("{workerHours: 1}", "{workerMilliseconds: 100, results: [" RUNS "]}");
    add_timed_trial(&scene, 0, "Succeeded",
                    "startTime: '2027-01-15T07:00:00.000Z', completionTime: '2027-01-15T07:00:00.300Z'");
    plan(&scene);
    cr_expect_eq(scene.plan.status.worker_ms, 700);
    scene_end(&scene);
}
