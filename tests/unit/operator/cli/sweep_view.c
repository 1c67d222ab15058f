/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/sweep_view.h"

#include "operator/cli/ui/documents.h"
#include "tests/unit/operator/cli/sweep_json.h"

Test(sweep_view, trials_are_sorted_and_the_best_is_known)
{
    struct scene scene;
    scene_init(&scene);
    for (size_t i = 0; i < scene.view.count; i++) {
        cr_expect_eq(scene.view.trials[i]->number, (int64_t)i);
        cr_expect_eq(sweep_view_is_best(&scene.view, scene.view.trials[i]), i == 0);
    }
    scene_release(&scene);
}

/* A trial that is not over and has no job is about to be created, or was deleted, which the sweep will find. */
Test(sweep_view, trials_that_are_over_are_there_without_their_jobs)
{
    struct training_sweep sweep =
        sweep_of(SWEEP_SPEC "status: {results: [{state: Succeeded, objective: '0.25'}, {state: Failed}, {state: "
                            "Succeeded, objective: '1'}, {state: Running}]}\n");
    struct trial_line *line = trial_of(&sweep, 1, "0.5", "one", TRIAL_FAILED);
    SCOPED(sweep_view_release) struct sweep_view view = {.sweep = &sweep};
    sweep_view_add(&view, line);
    sweep_view_complete(&view);
    cr_assert_eq(view.count, 3);
    for (size_t i = 0; i < 3; i++)
        cr_expect_eq(view.trials[i]->number, (int64_t)i);
    cr_expect_eq(view.trials[1], line, "the job says more than the result");
    cr_expect(!view.trials[0]->has_job && view.trials[1]->has_job && !view.trials[2]->has_job);
    cr_expect_str_eq(view.trials[2]->objective, "1");
    trial_line_free(line);
    training_sweep_release(&sweep);
}

/* Its job knows only that it is suspended. */
Test(sweep_view, a_trial_that_was_stopped_early_is_shown_as_its_result)
{
    struct training_sweep sweep = sweep_of(
        SWEEP_SPEC "status: {trials: {succeeded: 1, stopped: 1}, results: [{state: Succeeded}, {state: Stopped, "
                   "objective: '2', step: 20}]}\n");
    struct trial_line *line =
        trial_of(&sweep, 1, "0.5", "one", "{conditions: [{type: Suspended, status: 'True'}], progress: {step: 30}}");
    SCOPED(sweep_view_release) struct sweep_view view = {.sweep = &sweep};
    sweep_view_add(&view, line);
    sweep_view_complete(&view);
    cr_assert_eq(view.count, 2);
    cr_expect_str_eq(view.trials[1]->state, "Stopped");
    cr_expect_str_eq(view.trials[1]->objective, "2");
    cr_expect_eq(view.trials[1]->step, 20);
    cr_expect(trial_line_is_over(view.trials[1]) && !view.trials[1]->succeeded && !view.trials[1]->failed);
    cr_expect(view.trials[1]->has_job && !view.trials[0]->has_job);
    cr_expect_eq(sweep_done(&sweep), 2);
    trial_line_free(line);
    training_sweep_release(&sweep);
}

Test(sweep_view, a_paused_trial_is_shown_as_its_result_and_takes_no_time)
{
    struct training_sweep sweep =
        sweep_of(SWEEP_SPEC
                 "status: {trials: {total: 2, succeeded: 1, paused: 1}, conditions: [{type: Running, status: 'True'}], "
                 "results: [{state: Succeeded}, {state: Paused, objective: '2', step: 20}]}\n");
    struct trial_line *line =
        trial_of(&sweep, 1, "0.5", "one", "{conditions: [{type: Suspended, status: 'True'}], progress: {step: 30}}");
    struct trial_line *done = trial_of(&sweep, 0, "0.5", "one",
                                       "{conditions: [{type: Succeeded, status: 'True'}], startTime: "
                                       "2026-01-01T00:00:00Z, completionTime: 2026-01-01T00:00:40Z}");
    SCOPED(sweep_view_release) struct sweep_view view = {.sweep = &sweep};
    sweep_view_add(&view, line);
    sweep_view_add(&view, done);
    sweep_view_complete(&view);
    cr_assert_eq(view.count, 2);
    cr_expect_str_eq(view.trials[1]->state, "Paused");
    cr_expect_str_eq(view.trials[1]->objective, "2");
    cr_expect_eq(view.trials[1]->step, 20);
    cr_expect(!trial_line_is_over(view.trials[1]));
    cr_expect_eq(sweep_done(&sweep), 1);
    cr_expect_eq(sweep_view_left_ms(&view, SWEEP_NOW), -1, "nothing is known to be left");
    trial_line_free(line);
    trial_line_free(done);
    training_sweep_release(&sweep);
}

Test(sweep_view, what_stays_paused_is_done_once_the_sweep_is_over)
{
    static const char *const conditions[] = {"Running", "Complete", "Failed"};
    for (int i = 0; i < 3; i++) {
        SCOPED_FREE char *yaml = memory_format(SWEEP_SPEC "status: {trials: {total: 64, succeeded: 12, paused: 52}, "
                                                          "conditions: [{type: %s, status: 'True'}]}\n",
                                               conditions[i]);
        struct training_sweep sweep = sweep_of(yaml);
        SCOPED_JSON *object = sweep_json(yaml);
        SCOPED_JSON *row = ui_sweep_row(object);
        cr_expect_eq(sweep_done(&sweep), i == 0 ? 12 : 64, "%s", conditions[i]);
        cr_expect_eq(json_integer_at(row, "step", -1), i == 0 ? 12 : 64, "%s", conditions[i]);
        training_sweep_release(&sweep);
    }
}

Test(sweep_view, the_mean_of_those_that_succeeded_is_what_the_others_take)
{
    struct scene scene;
    scene_init(&scene);
    /* Trial 0 took 40 s. Trial 2 runs for 30 s, trial 3 has not started, and two more are to come: 10 + 3 * 40 s, two at a time. */
    cr_expect_eq(sweep_view_left_ms(&scene.view, SWEEP_NOW), 65000);
    scene.sweep.parallelism = 100;
    cr_expect_eq(sweep_view_left_ms(&scene.view, SWEEP_NOW), 40000, "none takes less than a whole trial");
    scene.sweep.suspend = true;
    cr_expect_eq(sweep_view_left_ms(&scene.view, SWEEP_NOW), -1, "a sweep that is suspended has no end");
    scene_release(&scene);
}

/* `progress` of the only trial, which runs for 30 s. */
static int64_t left_of_first(const char *progress)
{
    struct training_sweep sweep = sweep_of(
        SWEEP_SPEC "status: {conditions: [{type: Running, status: 'True'}], trials: {total: 6, running: 1}}\n");
    SCOPED_FREE char *status = memory_format(
        "{conditions: [{type: Running, status: 'True'}], startTime: '2026-11-20T14:00:30Z', progress: {%s}}", progress);
    struct trial_line *line = trial_of(&sweep, 0, "0.5", "one", status);
    SCOPED(sweep_view_release) struct sweep_view view = {.sweep = &sweep};
    sweep_view_add(&view, line);
    int64_t left_ms = sweep_view_left_ms(&view, SWEEP_NOW);
    trial_line_free(line);
    training_sweep_release(&sweep);
    return left_ms;
}

Test(sweep_view, before_a_trial_has_succeeded_those_that_run_say_what_one_takes)
{
    /* 30 s of 50 s are over, and five more trials are to come: 20 + 5 * 50 s, two at a time. */
    cr_expect_eq(left_of_first("step: 36, totalSteps: 60, secondsRemaining: 20"), 135000);
    /* 20 s of 40 s are over if the trial was suspended for 10 s. */
    cr_expect_eq(left_of_first("step: 36, totalSteps: 60, secondsRemaining: 20}, "
                               "controllerState: {suspendedMilliseconds: 10000"),
                 110000);
    cr_expect_eq(left_of_first("step: 5, totalSteps: 60, secondsRemaining: 900"), -1, "its first steps say little");
    cr_expect_eq(left_of_first("step: 36, totalSteps: 60"), -1);
}

Test(sweep_view, states)
{
    struct training_sweep young = sweep_of(SWEEP_SPEC), running = sweep_of(SWEEP_RUNS);
    struct training_sweep over = sweep_of(SWEEP_SPEC "status: {conditions: [{type: Complete, status: 'True'}, {type: "
                                                     "Running, status: 'False'}]}");
    cr_expect_str_eq(sweep_state(&young), "Pending");
    cr_expect_str_eq(sweep_state(&running), "Running");
    cr_expect_str_eq(sweep_state(&over), "Complete");
    cr_expect(sweep_is_over(&over) && !sweep_is_over(&running) && !sweep_is_over(&young));
    training_sweep_release(&young);
    training_sweep_release(&running);
    training_sweep_release(&over);
}

Test(sweep_view, a_label_is_short_unless_two_would_be_the_same)
{
    struct training_sweep sweep = sweep_of("metadata: {name: s}\nspec:\n  maxTrials: 1\n  template: {}\n  parameters:\n"
                                           "  - {path: a.units, values: [1]}\n  - {path: b.units, values: [1]}\n"
                                           "  - {path: a.rate, values: [1]}\n  - {env: A_B, values: [1]}\n");
    static const char *const labels[] = {"a.units", "b.units", "rate", "A_B"};
    for (unsigned i = 0; i < 4; i++)
        cr_expect_str_eq(sweep_parameter_label(&sweep, i), labels[i]);
    training_sweep_release(&sweep);
}

/* The page draws the axis of a parameter as its values are drawn. */
Test(sweep_view, the_page_knows_which_parameters_are_logarithmic)
{
    SCOPED_JSON *object = sweep_json("metadata: {name: s, namespace: n}\n"
                                     "spec: {maxTrials: 6, template: {}, parameters: [{path: a, uniform: {min: 1, max: "
                                     "2}}, {path: b, logUniform: {min: 1, max: 2}}, {path: c, integer: {min: 1, max: "
                                     "9}}, {path: d, integer: {min: 1, max: 9, scale: Log}}]}\n");
    struct training_sweep sweep;
    SCOPED_JSON *document = NULL;
    cr_assert_eq(training_sweep_parse(object, &sweep, NULL), 0);
    SCOPED(sweep_view_release) struct sweep_view view = {.sweep = &sweep};
    cr_assert_eq(ui_sweep_document(object, &view, SWEEP_NOW, &document, NULL), 0);
    const struct json *scales = json_member(document, "logarithmic");
    for (size_t i = 0; i < 4; i++)
        cr_expect_eq(json_boolean(json_element(scales, i), false), i % 2 == 1);
    training_sweep_release(&sweep);
}
