/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/trial_line.h"

#include "tests/unit/operator/cli/sweep_json.h"

Test(trial_line, reads_what_is_shown_of_a_job)
{
    struct scene scene;
    scene_init(&scene);
    const struct trial_line *running = scene.lines[0], *succeeded = scene.lines[1], *failed = scene.lines[2];
    cr_expect_eq(running->number, 2);
    cr_expect_str_eq(running->name, "s-2");
    cr_expect_str_eq(running->state, "Running");
    cr_expect(running->step == 30 && running->total_steps == 60 && running->seconds_left == -1);
    cr_expect_null(running->objective, "what it reports before it has succeeded does not count");
    cr_expect_str_eq(trial_line_value(running), "0.1");
    cr_expect_eq(trial_line_value_step(running), 30);
    cr_expect_eq(trial_line_value_step(succeeded), -1);
    cr_expect_null(trial_line_value(failed));
    cr_expect_str_eq(succeeded->objective, "0.25");
    cr_expect_str_eq(succeeded->values[0], "0.5");
    cr_expect_str_eq(succeeded->values[1], "one");
    cr_expect_eq(succeeded->end_ms - succeeded->start_ms, 40000);
    cr_expect_str_eq(failed->message, "out of memory");
    cr_expect_eq(failed->start_ms, FIELD_UNSET);
    cr_expect_str_eq(scene.lines[3]->state, "Pending");
    cr_expect(trial_line_is_over(succeeded) && trial_line_is_over(failed) && !trial_line_is_over(running));
    scene_release(&scene);
}

Test(trial_line, a_metric_that_is_no_number_is_none)
{
    static const char *const values[] = {"nan", "inf", "", "1x"};
    struct training_sweep sweep = sweep_of(SWEEP_SPEC);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        SCOPED_FREE char *status =
            memory_format("{conditions: [{type: Succeeded, status: 'True'}], progress: {metrics: [{name: "
                          "validationLoss, value: '%s'}]}}",
                          values[i]);
        struct trial_line *line = trial_of(&sweep, 0, "1", "one", status);
        cr_expect_null(line->objective, "%s", values[i]);
        trial_line_free(line);
    }
    training_sweep_release(&sweep);
}

Test(trial_line, a_trial_that_goes_on_or_was_interrupted_keeps_its_last_value_with_its_step)
{
    struct training_sweep sweep = sweep_of(SWEEP_SPEC);
    struct trial_line *line =
        trial_of(&sweep, 0, "1", "one",
                 "{conditions: [{type: Interrupted, status: 'True'}], progress: {step: 60, metrics: [{name: "
                 "validationLoss, value: '0.5', step: 50}]}}");
    cr_expect_null(line->objective);
    cr_expect_str_eq(trial_line_value(line), "0.5");
    cr_expect_eq(trial_line_value_step(line), 50);
    trial_line_free(line);
    training_sweep_release(&sweep);
}

Test(trial_line, a_job_without_a_number_is_no_trial)
{
    struct training_sweep sweep = sweep_of(SWEEP_SPEC);
    SCOPED_JSON *job = sweep_json("metadata: {name: s-0, labels: {coxswain.dev/trial: -1}}");
    struct trial_line *line = trial_line_new(&sweep, job);
    cr_expect_eq(line->number, -1);
    trial_line_free(line);
    training_sweep_release(&sweep);
}

Test(trial_line, a_result_is_known_without_its_job)
{
    struct training_sweep sweep =
        sweep_of(SWEEP_SPEC "  algorithm: {seed: 5}\nstatus: {results: [{state: Succeeded, objective: '0.25'}, {state: "
                            "Failed}]}\n");
    struct trial_line *line = trial_line_of_result(&sweep, 0), *failed = trial_line_of_result(&sweep, 1);
    cr_expect_eq(line->number, 0);
    cr_expect_str_eq(line->name, "s-0");
    cr_expect_str_eq(line->state, "Succeeded");
    cr_expect_str_eq(line->objective, "0.25");
    cr_expect_str_eq(line->values[0], "0.765982", "%s", line->values[0]);
    cr_expect_str_eq(line->values[1], "one", "%s", line->values[1]);
    cr_expect(line->succeeded && !line->failed && failed->failed && failed->start_ms == FIELD_UNSET);
    cr_expect_str_eq(failed->state, "Failed");
    cr_expect_null(failed->objective);
    trial_line_free(line);
    trial_line_free(failed);
    training_sweep_release(&sweep);
}

Test(trial_line, values_that_make_no_valid_job_are_the_reason_of_a_failure)
{
    struct training_sweep sweep = sweep_of(
        "metadata: {name: s}\nspec: {algorithm: {type: Grid}, template: {coxswain: {strategy: {type: OneDevice}, "
        "model: "
        "{preset: mlp}, data: {format: Synthetic, examples: 9}, training: {steps: 1, batchSize: 3, optimizer: {type: "
        "SGD}}}}, parameters: [{path: coxswain.training.optimizer.learningRate, values: [0.1, abc]}]}\nstatus: "
        "{results: [{state: Failed}, {state: Failed}]}\n");
    struct trial_line *valid = trial_line_of_result(&sweep, 0), *invalid = trial_line_of_result(&sweep, 1);
    cr_expect_str_eq(valid->message, "");
    cr_expect_not_null(strstr(invalid->message, "learningRate"), "%s", invalid->message);
    trial_line_free(valid);
    trial_line_free(invalid);
    training_sweep_release(&sweep);
}

Test(trial_line, a_value_that_is_not_tried_is_not_there)
{
    struct training_sweep sweep = sweep_of(
        "metadata: {name: s}\nspec: {algorithm: {type: Grid}, template: {}, parameters: [{env: KIND, values: [1, 2]}, "
        "{path: b, values: [x], when: {parameter: KIND, values: [2]}}]}\nstatus: {results: [{state: Failed}, {state: "
        "Failed}]}\n");
    for (unsigned trial = 0; trial < 2; trial++) {
        SCOPED_FREE char *yaml = memory_format("spec: {b: x, workers: {template: {spec: {containers: [{env: [{name: "
                                               "KIND, value: '%u'}]}]}}}}",
                                               trial + 1);
        SCOPED_JSON *job = sweep_json(yaml);
        struct trial_line *lines[] = {trial_line_new(&sweep, job), trial_line_of_result(&sweep, trial)};
        for (int i = 0; i < 2; i++) {
            cr_expect_str_eq(lines[i]->values[0], trial == 0 ? "1" : "2");
            cr_expect_eq(lines[i]->values[1] != NULL, trial == 1);
            trial_line_free(lines[i]);
        }
    }
    training_sweep_release(&sweep);
}

Test(trial_line, values_that_tpe_has_drawn_are_read_from_the_results)
{
    struct training_sweep sweep = sweep_of(SWEEP_SPEC "  algorithm: {type: TPE}\nstatus: {results: [{state: Failed, "
                                                      "values: '0.125,1'}, {state: Failed}]}\n");
    struct trial_line *line = trial_line_of_result(&sweep, 0), *unknown = trial_line_of_result(&sweep, 1);
    cr_expect_str_eq(line->values[0], "0.125");
    cr_expect_str_eq(line->values[1], "two, \"2\"");
    cr_expect(!unknown->values[0] && !unknown->values[1]);
    trial_line_free(line);
    trial_line_free(unknown);
    training_sweep_release(&sweep);
}
