/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/sweep/population.h"

#include "common/memory.h"
#include "operator/controller/sweep/suggestion.h"
#include "operator/controller/sweep/trial_build.h"
#include "sweep_scene.h"

#define PBT(parameters)                                                                                                \
    SWEEP_HEAD "      checkpoint: {storage: runs}\n    storage: [{name: runs, hostPath: {path: /runs}}]\n"             \
               "  maxTrials: 1000\n  algorithm: {type: PBT, population: 5}\n  parameters: [" parameters "]\n"
#define RATE "{path: coxswain.training.optimizer.learningRate, logUniform: {min: 0.001, max: 1}}"
#define MOMENTUM "{path: coxswain.training.optimizer.momentum, values: [0.5, 0.8, 0.9]}"
#define BATCH "{path: coxswain.training.batchSize, integer: {min: 10, max: 100}}"

#define SUCCEEDED(value)                                                                                               \
    {                                                                                                                  \
        .state = TRIAL_SUCCEEDED, .objective = (value), .parent = FIELD_UNSET                                          \
    }
#define IN_STATE(what)                                                                                                 \
    {                                                                                                                  \
        .state = (what), .parent = FIELD_UNSET                                                                         \
    }

Test(population, a_generation_waits_for_the_one_before)
{
    struct training_sweep sweep = sweep_from(PBT(RATE));
    struct trial_record results[10] = {SUCCEEDED("1"), SUCCEEDED("2"), IN_STATE(TRIAL_FAILED), SUCCEEDED("3"),
                                       IN_STATE(TRIAL_RUNNING)};
    for (int64_t trial = 0; trial < 10; trial++)
        cr_expect_eq(population_may_start(&sweep, results, trial), trial < 5, "%d", (int)trial);
    results[4].state = TRIAL_FAILED;
    cr_expect(population_may_start(&sweep, results, 5));
    training_sweep_release(&sweep);
}

static void expect_parents(const char *yaml, const struct trial_record *results, const int64_t parents[5])
{
    struct training_sweep sweep = sweep_from(yaml);
    for (int64_t i = 0; i < 5; i++)
        cr_expect_eq(population_parent(&sweep, results, 5 + i), parents[i], "member %d: %d", (int)i,
                     (int)population_parent(&sweep, results, 5 + i));
    cr_expect_eq(population_parent(&sweep, results, 3), FIELD_UNSET);
    training_sweep_release(&sweep);
}

Test(population, the_worst_goes_on_from_the_best)
{
    const struct trial_record all[10] = {SUCCEEDED("3"), SUCCEEDED("1"), SUCCEEDED("5"), SUCCEEDED("4"),
                                         SUCCEEDED("2")};
    const struct trial_record some[10] = {IN_STATE(TRIAL_FAILED), SUCCEEDED("1"), SUCCEEDED("2"),
                                          IN_STATE(TRIAL_FAILED), IN_STATE(TRIAL_FAILED)};
    const struct trial_record one[10] = {IN_STATE(TRIAL_FAILED), IN_STATE(TRIAL_FAILED), SUCCEEDED("2"),
                                         IN_STATE(TRIAL_FAILED), IN_STATE(TRIAL_FAILED)};
    const struct trial_record none[10] = {IN_STATE(TRIAL_FAILED), IN_STATE(TRIAL_FAILED), IN_STATE(TRIAL_FAILED),
                                          IN_STATE(TRIAL_FAILED), IN_STATE(TRIAL_FAILED)};
    expect_parents(PBT(RATE), all, (const int64_t[]){0, 1, 1, 3, 4});
    expect_parents(PBT(RATE) "  objective: {goal: Maximize}\n", all, (const int64_t[]){0, 2, 2, 3, 4});
    expect_parents(PBT(RATE), some, (const int64_t[]){1, 1, 1, 1, 1});
    expect_parents(PBT(RATE), one, (const int64_t[]){2, 2, 2, 2, 2});
    expect_parents(PBT(RATE), none, (const int64_t[]){FIELD_UNSET, FIELD_UNSET, FIELD_UNSET, FIELD_UNSET, FIELD_UNSET});
}

/* The value that a trial has which goes on from the parent, whose values are recorded. */
static double value_after(struct training_sweep *sweep, const char *values, int64_t trial, int64_t parent)
{
    struct trial_record *results = memory_allocate((size_t)trial + 1, sizeof *results);
    for (int64_t i = 0; i <= trial; i++)
        results[i].parent = FIELD_UNSET;
    results[parent].values = values;
    results[trial].parent = parent;
    struct sweep_status saved = sweep->status;
    sweep->status.results = results;
    sweep->status.result_count = (unsigned)trial + 1;
    SCOPED_JSON *value = suggestion_value(sweep, 0, trial);
    sweep->status = saved;
    free(results);
    return json_number(value, -1);
}

/* Counts how often a copy has each of the two values that it may have, over many seeds. */
static void expect_copies(const char *yaml, const char *values, double less, double more)
{
    struct training_sweep sweep = sweep_from(yaml);
    int lower = 0, higher = 0, others = 0;
    for (sweep.algorithm.seed = 0; sweep.algorithm.seed < 400; sweep.algorithm.seed++) {
        double value = value_after(&sweep, values, 7, 3);
        if (value == less)
            lower++;
        else if (value == more)
            higher++;
        else
            others++;
    }
    /* Three of eight each, and a quarter is drawn anew: a value of a list may be one of those by chance. */
    cr_expect(lower > 110 && lower < 290, "%s: %d", values, lower);
    cr_expect(less == more || (higher > 110 && higher < 290), "%s: %d", values, higher);
    cr_expect(others < 140, "%s: %d", values, others);
    training_sweep_release(&sweep);
}

Test(population, copies_have_other_values)
{
    expect_copies(PBT(RATE), "0.1", 0.08, 0.12);
    expect_copies(PBT(BATCH), "50", 40, 60);
    expect_copies(PBT(MOMENTUM), "1", 0.5, 0.9);
    expect_copies(PBT("{path: coxswain.training.batchSize, integer: {min: 1, max: 1000000}}"), "2", 1, 3);
    expect_copies(PBT("{path: coxswain.training.batchSize, integer: {min: 16, max: 1000, step: 16}}"), "64", 48, 80);
    expect_copies(PBT("{path: coxswain.training.batchSize, integer: {min: 16, max: 1000, step: 16}}"), "32", 16, 48);
}

/* Whatever is drawn, a copy of a parent at a bound moves away from it. */
static void expect_moved(const char *yaml, const char *values, double wanted)
{
    struct training_sweep sweep = sweep_from(yaml);
    int moved = 0, same = 0;
    for (sweep.algorithm.seed = 0; sweep.algorithm.seed < 400; sweep.algorithm.seed++) {
        double value = value_after(&sweep, values, 7, 3);
        moved += value == wanted;
        same += value == strtod(values, NULL);
    }
    cr_expect(moved > 260 && same < 20, "%s: %d moved, %d the same", values, moved, same);
    training_sweep_release(&sweep);
}

Test(population, copies_of_a_parent_at_a_bound_have_other_values)
{
    expect_moved(PBT(RATE), "1", 0.8);
    expect_moved(PBT(RATE), "0.001", 0.0012);
    expect_moved(PBT(BATCH), "100", 80);
    expect_moved(PBT(BATCH), "10", 12);
    expect_moved(PBT("{path: coxswain.training.batchSize, integer: {min: 1, max: 1000000}}"), "1", 2);
}

Test(population, members_that_stay_keep_their_values)
{
    struct training_sweep sweep = sweep_from(PBT(RATE)), whole = sweep_from(PBT(BATCH));
    cr_expect_eq(value_after(&sweep, "0.123", 7, 2), 0.123);
    cr_expect_eq(value_after(&whole, "77", 7, 2), 77);
    training_sweep_release(&sweep);
    training_sweep_release(&whole);
}

Test(population, trials_go_on_from_their_parent)
{
    struct training_sweep sweep = sweep_from(PBT(RATE));
    struct trial_record results[11];
    struct error error = ERROR_INIT;
    struct json *object;
    sweep.uid = "12345678-9abc"; /* another sweep of the same name has other folders */
    for (int i = 0; i < 11; i++)
        results[i] = (struct trial_record){.parent = FIELD_UNSET, .values = "0.1"};
    results[10].parent = 7;
    struct sweep_status saved = sweep.status;
    sweep.status.results = results;
    sweep.status.result_count = 11;
    cr_assert_eq(trial_build(&sweep, 10, &object, &error), 0, "%s", error.message);
    cr_expect_str_eq(json_string_at(object, "spec.coxswain.init.path", ""), "s-7-12345678");
    cr_expect_str_eq(json_string_at(object, "spec.coxswain.checkpoint.path", ""), "s-10-12345678");
    cr_expect_str_eq(json_string_at(object, "spec.coxswain.init.storage", ""), "runs");
    cr_expect_eq(json_integer_at(object, "spec.coxswain.training.steps", 0), 30);
    json_free(object);
    cr_assert_eq(trial_build(&sweep, 2, &object, &error), 0, "%s", error.message);
    cr_expect_null(json_at(object, "spec.coxswain.init"));
    cr_expect_str_eq(json_string_at(object, "spec.coxswain.checkpoint.path", ""), "s-2-12345678");
    cr_expect_eq(json_integer_at(object, "spec.coxswain.training.steps", 0), 10);
    json_free(object);
    results[10].parent = FIELD_UNSET;
    cr_expect_lt(trial_build(&sweep, 10, &object, &error), 0);
    cr_expect_not_null(strstr(error.message, "no trial of the generation before"));
    sweep.status = saved;
    training_sweep_release(&sweep);
}
