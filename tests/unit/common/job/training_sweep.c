/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/training_sweep.h"

#include "common/job/rules.h"
#include "common/memory.h"
#include "manifest.h"

#define SPEC                                                                                                           \
    "metadata: {name: s, namespace: n, uid: u, resourceVersion: '7', generation: 2}\nspec:\n  template: {coxswain: "   \
    "{}}\n"
#define PARAMETERS "  parameters: [{path: a.b, values: [1, two, true]}]\n"

static void expect_violation(const char *yaml, const char *field, const char *message)
{
    SCOPED_JSON *object = manifest_value(yaml);
    SCOPED_JSON *violations = training_sweep_violations(object, NULL);
    cr_assert_eq(json_count(violations), 1, "%s: %zu", yaml, json_count(violations));
    cr_expect_str_eq(json_string_at(json_first(violations), "field", ""), field);
    cr_expect(strstr(json_string_at(json_first(violations), "message", ""), message), "%s",
              json_string_at(json_first(violations), "message", ""));
}

Test(training_sweep, is_read_with_defaults)
{
    struct training_sweep sweep;
    SCOPED_JSON *object = manifest_value(SPEC PARAMETERS "  maxTrials: 9\n");
    cr_assert_eq(training_sweep_parse(object, &sweep, NULL), 0);
    cr_expect_str_eq(sweep.name, "s");
    cr_expect_str_eq(sweep.uid, "u");
    cr_expect_eq(sweep.generation, 2);
    cr_expect_eq(sweep.deleted_ms, FIELD_UNSET);
    cr_expect_eq(sweep.algorithm.type, SWEEP_RANDOM);
    cr_expect_eq(sweep.algorithm.startup_trials, 10);
    cr_expect_eq(sweep.parallelism, 1);
    cr_expect_eq(sweep.max_trials, 9);
    cr_expect_eq(sweep.max_failed_trials, 3);
    cr_expect_str_eq(sweep.objective.metric, "validationLoss");
    cr_expect_eq(sweep.objective.goal, GOAL_MINIMIZE);
    cr_assert_eq(sweep.parameter_count, 1);
    cr_expect_str_eq(sweep.parameters[0].path, "a.b");
    expect_printed(sweep.parameters[0].values, "[1,\"two\",true]");
    cr_expect(!sweep.parameters[0].has_uniform && !sweep.parameters[0].has_integer);
    expect_printed(sweep.template, "{\"coxswain\":{}}");
    training_sweep_release(&sweep);
}

/* These have no form that a real API server checks, so that they are not in the corpus. */
Test(training_sweep, what_only_the_operator_refuses)
{
    expect_violation(SPEC "  maxTrials: 1\n  parameters: [{path: a, values: [1], integer: {min: 1, max: 2}}]\n",
                     "spec.parameters[0]", "exactly one of");
    expect_violation(SPEC "  maxTrials: 1\n  parameters: [{path: a}]\n", "spec.parameters[0]", "exactly one of");
    expect_violation(SPEC "  maxTrials: 1\n  parameters: [{path: a, values: [1, [2]]}]\n",
                     "spec.parameters[0].values[1]", "give a number");
    expect_violation(SPEC "  maxTrials: 1\n  parameters: [{path: a, uniform: {min: 2, max: '1.5'}}]\n",
                     "spec.parameters[0].uniform.max", "above min");
    expect_violation(SPEC "  maxTrials: 1\n  parameters: [{path: a, logUniform: {min: 1, max: 1}}]\n",
                     "spec.parameters[0].logUniform.max", "above min");
    expect_violation(SPEC "  maxTrials: 1\n  parameters: [{env: A, values: [1]}, {path: A, values: [1]}, {env: A, "
                          "values: [2]}]\n",
                     "spec.parameters", "two of them");
    expect_violation(SPEC "  algorithm: {type: Grid}\n  parameters: [{path: a, integer: {min: 1, max: 101}}, {path: b, "
                          "integer: {min: 1, max: 100}}]\n",
                     "spec.parameters", "more than 10000");
    expect_violation(SPEC
                     "  algorithm: {type: Grid}\n  earlyStopping: {type: ASHA, minSteps: 1}\n  parameters: [{path: "
                     "a, integer: {min: 1, max: 1001}}]\n",
                     "spec.parameters", "more than 1000 points");
}

#define POPULATION SPEC "  maxTrials: 8\n  algorithm: {type: PBT, population: 4}\n"
#define MOMENTUM(values) "  parameters: [{path: coxswain.training.optimizer.momentum, " values "}]\n"

/* SGD without momentum saves no slot from which one with momentum could go on. */
Test(training_sweep, a_population_has_no_momentum_of_zero_beside_others)
{
    static const char *const good[] = {POPULATION MOMENTUM("values: [0.1, 0.9]"), POPULATION MOMENTUM("values: [0]"),
                                       POPULATION MOMENTUM("uniform: {min: 0, max: 0.9}"),
                                       SPEC "  maxTrials: 8\n" MOMENTUM("values: [0, 0.9]")};
    expect_violation(POPULATION MOMENTUM("values: [0.9, 0]"), "spec.parameters", "a momentum of 0");
    expect_violation(POPULATION MOMENTUM("values: ['0.0', 0.9]"), "spec.parameters", "a momentum of 0");
    expect_violation(POPULATION MOMENTUM("integer: {min: 0, max: 1}"), "spec.parameters", "a momentum of 0");
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        SCOPED_JSON *object = manifest_value(good[i]);
        SCOPED_JSON *violations = training_sweep_violations(object, NULL);
        cr_expect_eq(json_count(violations), 0, "%s", good[i]);
    }
}

Test(training_sweep, hyperband_has_trials_for_every_bracket)
{
    expect_violation(SPEC PARAMETERS "  maxTrials: 24\n  earlyStopping: {type: Hyperband, minSteps: 1}\n",
                     "spec.earlyStopping.brackets", "fewer trials than one round");
    expect_violation(SPEC PARAMETERS "  maxTrials: 1000\n  earlyStopping: {type: Hyperband, minSteps: 1, "
                                     "reductionFactor: 100, brackets: 8}\n",
                     "spec.earlyStopping.brackets", "fewer trials than one round");
    expect_violation(SPEC "  algorithm: {type: Grid}\n  parameters: [{path: a, integer: {min: 1, max: 24}}]\n"
                          "  earlyStopping: {type: Hyperband, minSteps: 1}\n",
                     "spec.earlyStopping.brackets", "fewer trials than one round");
    SCOPED_JSON *enough =
        manifest_value(SPEC PARAMETERS "  maxTrials: 25\n  earlyStopping: {type: Hyperband, minSteps: 1}\n");
    SCOPED_JSON *violations = training_sweep_violations(enough, NULL);
    cr_expect_eq(json_count(violations), 0);
}

#define CHOSEN                                                                                                         \
    SPEC "  maxTrials: 1\n"                                                                                            \
         "  parameters:\n"                                                                                             \
         "  - {path: optimizer, values: [SGD, AdamW]}\n"                                                               \
         "  - {env: DEPTH, integer: {min: 1, max: 3}}\n"                                                               \
         "  - {path: rate, uniform: {min: 0, max: 1}}\n"                                                               \
         "  - {path: width, integer: {min: 16, max: 64, step: 16}}\n"

Test(training_sweep, conditions_of_parameters)
{
    static const char *const good[] = {"{parameter: optimizer, values: [SGD]}", "{parameter: DEPTH, values: [2, 3]}",
                                       "{parameter: width, values: [16, 48]}"};
    static const char *const bad[][2] = {
        {"{parameter: optimiser, values: [SGD]}", "names a parameter that does not exist"},
        {"{parameter: momentum, values: [1]}", "must name a parameter that is earlier"},
        {"{parameter: later, values: [1]}", "must name a parameter that is earlier"},
        {"{parameter: optimizer, values: [SGD, Adam]}", "never has"},
        {"{parameter: DEPTH, values: [4]}", "never has"},
        {"{parameter: DEPTH, values: [1.5]}", "never has"},
        {"{parameter: DEPTH, values: ['1']}", "never has"},
        {"{parameter: rate, values: [0.5]}", "never has"},
        {"{parameter: width, values: [24]}", "never has"},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        SCOPED_FREE char *yaml = memory_format(CHOSEN "  - {path: momentum, values: [1], when: %s}\n", good[i]);
        SCOPED_JSON *object = manifest_value(yaml);
        SCOPED_JSON *violations = training_sweep_violations(object, NULL);
        cr_expect_eq(json_count(violations), 0, "%s", good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        SCOPED_FREE char *yaml = memory_format(
            CHOSEN "  - {path: momentum, values: [1], when: %s}\n  - {path: later, values: [1]}\n", bad[i][0]);
        expect_violation(yaml, "spec.parameters", bad[i][1]);
    }
}

Test(training_sweep, only_what_steers_a_sweep_may_change)
{
    SCOPED_JSON *old = manifest_value(SPEC PARAMETERS "  maxTrials: 9\n");
    SCOPED_JSON *steered =
        manifest_value(SPEC PARAMETERS "  maxTrials: 8\n  parallelism: 3\n  suspend: true\n  maxFailedTrials: 0\n");
    SCOPED_JSON *other = manifest_value(SPEC PARAMETERS "  maxTrials: 9\n  algorithm: {seed: 1}\n");
    SCOPED_JSON *none = training_sweep_violations(steered, old);
    cr_expect_eq(json_count(none), 0);
    SCOPED_JSON *violations = training_sweep_violations(other, old);
    cr_assert_eq(json_count(violations), 1);
    cr_expect_str_eq(json_string_at(json_first(violations), "field", ""), "spec.algorithm");
}

Test(training_sweep, its_name_leaves_room_for_the_trials_numbers)
{
    const char *longest = "abcdefghijabcdefghijabcdefghijabcde";
    cr_expect(sweep_name_holds(longest) && sweep_name_holds("a"));
    cr_expect(!sweep_name_holds("abcdefghijabcdefghijabcdefghijabcdef") && !sweep_name_holds("a.b"));
    SCOPED_FREE char *trial = memory_format("%s-%d", longest, SWEEP_TRIALS_MAX - 1);
    cr_expect(job_name_holds(trial));
}

Test(training_sweep, early_stopping_is_read_with_defaults)
{
    struct training_sweep none, asha, median;
    SCOPED_JSON *plain = manifest_value(SPEC PARAMETERS "  maxTrials: 9\n");
    SCOPED_JSON *first =
        manifest_value(SPEC PARAMETERS "  maxTrials: 9\n  earlyStopping: {type: ASHA, minSteps: 50}\n");
    SCOPED_JSON *second =
        manifest_value(SPEC PARAMETERS "  maxTrials: 9\n  earlyStopping: {type: Median, minSteps: 5}\n");
    cr_assert_eq(training_sweep_parse(plain, &none, NULL), 0);
    cr_assert_eq(training_sweep_parse(first, &asha, NULL), 0);
    cr_assert_eq(training_sweep_parse(second, &median, NULL), 0);
    cr_expect(!none.has_early_stopping && asha.has_early_stopping && median.has_early_stopping);
    cr_expect(asha.early_stopping.type == EARLY_STOPPING_ASHA && median.early_stopping.type == EARLY_STOPPING_MEDIAN);
    cr_expect(asha.early_stopping.min_steps == 50 && asha.early_stopping.reduction_factor == 4);
    cr_expect_eq(median.early_stopping.startup_trials, 5);
    training_sweep_release(&none);
    training_sweep_release(&asha);
    training_sweep_release(&median);
}

Test(training_sweep, size_of_a_grid)
{
    SCOPED_JSON *spec =
        manifest_value("parameters: [{values: [1, 2]}, {integer: {min: -1, max: 1}}, {values: [a, b, c, d]}]\n");
    SCOPED_JSON *endless = manifest_value("parameters: [{values: [1, 2]}, {uniform: {min: 0, max: 1}}]\n");
    SCOPED_JSON *huge = manifest_value("parameters: [{integer: {min: -1000000000000, max: 1000000000000}}, {integer: "
                                       "{min: -1000000000000, max: 1000000000000}}, {values: [1, 2]}]\n");
    SCOPED_JSON *conditional = manifest_value(
        "parameters: [{path: a, values: [1, 2, 3]}, {path: b, values: [x, y], when: {parameter: a, values: [2, 3]}}, "
        "{path: c, integer: {min: 1, max: 5}, when: {parameter: b, values: [y]}}, {path: d, values: [1, 2]}]\n");
    SCOPED_JSON *steps = manifest_value("parameters: [{integer: {min: 10, max: 39, step: 10}}]\n");
    SCOPED_JSON *broken = manifest_value("parameters: [5, {integer: {min: 1}}, {values: 7, when: {parameter: 3}}]\n");
    cr_expect_eq(sweep_grid_size(spec), 24);
    cr_expect_eq(sweep_grid_size(conditional), (1 + 2 * (1 + 5)) * 2);
    cr_expect_eq(sweep_grid_size(steps), 3);
    cr_expect_eq(sweep_grid_size(broken), 0);
    cr_expect_eq(sweep_grid_size(endless), 0);
    cr_expect_eq(sweep_grid_size(huge), SWEEP_TRIALS_MAX + 1);
}

Test(training_sweep, its_status_reads_back)
{
    struct training_sweep sweep;
    SCOPED_JSON *object =
        manifest_value(SPEC PARAMETERS
                       "  maxTrials: 9\n"
                       "status:\n"
                       "  observedGeneration: 2\n"
                       "  trials: {total: 9, running: 2, succeeded: 3, failed: 1, diverged: 1, stopped: 0, paused: 1}\n"
                       "  best: {trial: s-2, objective: '0.25', parameters: [{name: a.b, value: two}]}\n"
                       "  startTime: '2026-11-20T14:00:00Z'\n"
                       "  results: [{state: Succeeded, objective: '0.25', values: '1,0.5'}, {state: Failed, values: "
                       "'2,0.5'}, {state: Running, rungs: '0.5,,0.25', objective: '0.25', step: 40}]\n"
                       "  controllerState: {pending: '2', stopping: '2', promoted: '1'}\n"
                       "  conditions:\n"
                       "  - {type: Running, status: 'True', observedGeneration: 2, lastTransitionTime: "
                       "'2026-11-20T14:00:00Z', reason: TrialsRunning, message: m}\n"
                       "  - {type: example.com/Billed, status: 'True'}\n");
    cr_assert_eq(training_sweep_parse(object, &sweep, NULL), 0);
    cr_expect_str_eq(sweep.status.best.parameters[0].value, "two");
    cr_assert_eq(sweep.status.result_count, 3);
    cr_expect_eq(sweep.status.results[0].state, TRIAL_SUCCEEDED);
    cr_expect_str_eq(sweep.status.results[0].objective, "0.25");
    cr_expect_str_eq(sweep.status.results[1].values, "2,0.5");
    cr_expect_eq(sweep.status.conditions[SWEEP_RUNNING].status, CONDITION_TRUE);
    SCOPED_JSON *written = sweep_status_to_json(&sweep.status);
    cr_expect(json_equal(written, json_member(object, "status")));
    training_sweep_release(&sweep);
}
