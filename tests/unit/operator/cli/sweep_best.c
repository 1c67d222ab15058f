/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/sweep_best.h"

#include "common/contract/labels.h"
#include "tests/unit/operator/cli/sweep_json.h"

Test(sweep_best, the_template_with_the_values_of_the_best)
{
    struct training_sweep sweep = sweep_of(SWEEP_RUNS);
    SCOPED_JSON *job = NULL;
    cr_assert_eq(sweep_best_job(&sweep, &job, NULL), 0);
    cr_expect_str_eq(json_string_at(job, "apiVersion", ""), API_GROUP_VERSION);
    cr_expect_str_eq(json_string_at(job, "kind", ""), "TrainingJob");
    cr_expect_str_eq(json_string_at(job, "metadata.name", ""), "s-best");
    cr_expect_str_eq(json_string_at(job, "metadata.namespace", ""), "n");
    cr_expect_null(json_at(job, "metadata.labels"));
    cr_expect_eq(json_number_at(job, "spec.coxswain.training.optimizer.learningRate", 0), 0.5);
    cr_expect_str_eq(json_string_at(job, "spec.coxswain.model.preset", ""), "mlp");
    const struct json *trainer = json_first(json_at(job, "spec.workers.template.spec.containers"));
    cr_expect_str_eq(json_string_at(json_first(json_member(trainer, "env")), "value", ""), "one");
    training_sweep_release(&sweep);
}

Test(sweep_best, numbers_that_were_listed_as_words_stay_words)
{
    struct training_sweep sweep = sweep_of(
        "metadata: {name: s, labels: {kueue.x-k8s.io/queue-name: q}}\n"
        "spec: {maxTrials: 1, template: {}, parameters: [{path: a, values: ['1', 2]}, {path: b, integer: {min: 1, max: "
        "3000000}}]}\n"
        "status: {best: {trial: s-0, objective: '1', parameters: [{name: a, value: '1'}, {name: b, value: "
        "'2000000'}]}}\n");
    SCOPED_JSON *job = NULL;
    cr_assert_eq(sweep_best_job(&sweep, &job, NULL), 0);
    cr_expect_eq(json_type(json_at(job, "spec.a")), JSON_STRING);
    cr_expect_eq(json_integer_at(job, "spec.b", 0), 2000000);
    cr_expect_str_eq(json_string(json_member(json_at(job, "metadata.labels"), LABEL_QUEUE_NAME), ""), "q");
    training_sweep_release(&sweep);
}

Test(sweep_best, a_parameter_that_was_not_tried_is_left_out)
{
    struct training_sweep sweep = sweep_of(
        "metadata: {name: s}\n"
        "spec: {maxTrials: 1, template: {b: 7}, parameters: [{path: a, values: [1, 2]}, {path: b, values: [5], when: "
        "{parameter: a, values: [2]}}]}\n"
        "status: {best: {trial: s-0, objective: '1', parameters: [{name: a, value: '1'}]}}\n");
    SCOPED_JSON *job = NULL;
    cr_assert_eq(sweep_best_job(&sweep, &job, NULL), 0);
    cr_expect_eq(json_integer_at(job, "spec.a", 0), 1);
    cr_expect_eq(json_integer_at(job, "spec.b", 0), 7);
    training_sweep_release(&sweep);
}

Test(sweep_best, a_job_of_trials_that_were_compared_by_their_best_weights_exports_them)
{
    struct training_sweep sweep =
        sweep_of("metadata: {name: s}\n"
                 "spec: {maxTrials: 1, objective: {value: Best}, parameters: [{path: a, values: [1]}], template: "
                 "{coxswain: {checkpoint: {storage: runs, keepBest: true}}}}\n"
                 "status: {best: {trial: s-0, objective: '1', parameters: [{name: a, value: '1'}]}}\n");
    SCOPED_JSON *job = NULL;
    cr_assert_eq(sweep_best_job(&sweep, &job, NULL), 0);
    cr_expect_str_eq(json_string_at(job, "spec.coxswain.export.storage", ""), "runs");
    cr_expect_str_eq(json_string_at(job, "spec.coxswain.export.path", ""), "s-best/model.safetensors");
    cr_expect_str_eq(json_string_at(job, "spec.coxswain.export.weights", ""), "Best");
    training_sweep_release(&sweep);
}

static void expect_none(const char *yaml, const char *message)
{
    struct training_sweep sweep = sweep_of(yaml);
    SCOPED_JSON *job = NULL;
    struct error error = ERROR_INIT;
    cr_assert_lt(sweep_best_job(&sweep, &job, &error), 0);
    cr_expect_str_eq(error.message, message);
    training_sweep_release(&sweep);
}

Test(sweep_best, no_trial_has_succeeded)
{
    expect_none(SWEEP_SPEC, "sweep s has no best trial: none has succeeded yet");
    expect_none(SWEEP_SPEC "status: {completionTime: '2026-11-20T14:00:00Z'}\n",
                "sweep s has no best trial: none has succeeded");
}

Test(sweep_best, a_status_that_is_not_of_this_spec)
{
    expect_none(SWEEP_SPEC "status: {best: {trial: s-0, objective: '1', parameters: [{name: WORDS, value: one}]}}\n",
                "sweep s: status.best has no value of parameter coxswain.training.optimizer.learningRate, or one that "
                "spec.parameters does not allow; its status is not of this spec: create the sweep anew");
}

Test(sweep_best, yaml_says_which_trial_it_was)
{
    struct training_sweep sweep = sweep_of(SWEEP_RUNS);
    SCOPED_BUFFER out = BUFFER_INIT(65536);
    cr_assert_eq(sweep_best_print(&sweep, &out, NULL), 0);
    cr_expect(strstr(buffer_text(&out), "# Trial s-0, the best of the sweep s: validationLoss 0.25.\napiVersion: ") ==
              buffer_text(&out));
    SCOPED_JSON *again = sweep_json(buffer_text(&out));
    cr_expect_str_eq(json_string_at(again, "metadata.name", ""), "s-best");
    training_sweep_release(&sweep);
}

Test(sweep_best, saves_to_a_folder_of_its_trial_and_its_sweep)
{
    struct training_sweep sweep =
        sweep_of("metadata: {name: s, uid: 12345678-9abc}\n"
                 "spec: {maxTrials: 8, template: {coxswain: {checkpoint: {storage: runs}}}, parameters: [{path: "
                 "coxswain.training.seed, values: [1]}]}\n"
                 "status: {best: {trial: s-5, objective: '1', parameters: [{name: coxswain.training.seed, value: "
                 "'1'}]}}\n");
    SCOPED_JSON *job = NULL;
    cr_assert_eq(sweep_best_job(&sweep, &job, NULL), 0);
    cr_expect_str_eq(json_string_at(job, "spec.coxswain.checkpoint.path", ""), "s-5-12345678-best");
    cr_expect_null(json_at(job, "spec.coxswain.init"));
    training_sweep_release(&sweep);
}

Test(sweep_best, of_a_population_goes_on_from_its_checkpoint)
{
    struct training_sweep sweep =
        sweep_of("metadata: {name: s, uid: 12345678-9abc}\n"
                 "spec: {algorithm: {type: PBT, population: 2}, maxTrials: 8, template: {coxswain: {checkpoint: "
                 "{storage: runs}, training: "
                 "{steps: 10}}}, parameters: [{path: coxswain.training.optimizer.learningRate, values: [0.5]}]}\n"
                 "status: {best: {trial: s-5, objective: '1', parameters: [{name: "
                 "coxswain.training.optimizer.learningRate, value: "
                 "'0.5'}]}}\n");
    SCOPED_JSON *job = NULL;
    SCOPED_BUFFER text = BUFFER_INIT(65536);
    cr_assert_eq(sweep_best_job(&sweep, &job, NULL), 0);
    cr_expect_str_eq(json_string_at(job, "spec.coxswain.init.path", ""), "s-5-12345678");
    cr_expect_str_eq(json_string_at(job, "spec.coxswain.checkpoint.path", ""), "s-5-12345678-best");
    cr_expect_str_eq(json_string_at(job, "spec.coxswain.init.storage", ""), "runs");
    cr_expect_eq(json_integer_at(job, "spec.coxswain.training.steps", 0), 30);
    cr_assert_eq(sweep_best_print(&sweep, &text, NULL), 0);
    cr_expect_not_null(strstr(buffer_text(&text), "begins with its checkpoint"));
    cr_expect_not_null(strstr(buffer_text(&text), "--volume CLAIM=STATE/volumes/NAMESPACE/CLAIM"));
    training_sweep_release(&sweep);
}
