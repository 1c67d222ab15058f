/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions whose lowest values are known, and a search for them by the function with which the operator chooses the values of trials
 * (suggestion.h), one trial after the other. The regret is the value at the best trial, minus the lowest value that there is. Unit tests
 * set bounds on it, and tests/bench/bench_tpe.c prints it.
 */
#ifndef COXSWAIN_TESTS_SWEEP_SEARCH_H
#define COXSWAIN_TESTS_SWEEP_SEARCH_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/job/sweep_value.h"
#include "common/memory.h"
#include "common/philox.h"
#include "common/yaml.h"
#include "operator/controller/sweep/suggestion.h"

#define SEARCH_PARAMETERS_MAX 6
#define SEARCH_YAML_MAX 4096

/* ---------------------------------------------------------------- functions */

/* `x` has a parameter's number as the status records it, and NAN for one that is not tried. */
static inline double branin(const double *x)
{
    double bend = x[1] - 5.1 / (4 * M_PI * M_PI) * x[0] * x[0] + 5 / M_PI * x[0] - 6;
    return bend * bend + 10 * (1 - 1 / (8 * M_PI)) * cos(x[0]) + 10;
}

static inline double hartmann6(const double *x)
{
    static const double heights[4] = {1, 1.2, 3, 3.2};
    static const double steepness[4][6] = {
        {10, 3, 17, 3.5, 1.7, 8}, {0.05, 10, 17, 0.1, 8, 14}, {3, 3.5, 1.7, 10, 17, 8}, {17, 8, 0.05, 10, 0.1, 14}};
    static const double centers[4][6] = {{0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886},
                                         {0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991},
                                         {0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650},
                                         {0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381}};
    double sum = 0;
    for (int i = 0; i < 4; i++) {
        double distance = 0;
        for (int j = 0; j < 6; j++)
            distance += steepness[i][j] * (x[j] - centers[i][j]) * (x[j] - centers[i][j]);
        sum -= heights[i] * exp(-distance);
    }
    return sum;
}

/* The optimizer decides which other parameters there are, and which learning rate is good. */
static inline double mixed(const double *x)
{
    static const double floors[4] = {0.5, 0.9, 0, 0.7};
    int optimizer = (int)x[0];
    double rate = log10(x[1]) + (optimizer < 2 ? 1 : 3);
    double own = optimizer < 2 ? 2 * (x[2] - 0.9) : (x[3] - 48) / 16;
    return floors[optimizer] + rate * rate + own * own + (x[4] == 1 ? 0 : 0.3);
}

/* Adam is the better optimizer, but only in a small part of its range; SGD is nearly as good and easy to tune. */
static inline double conditional(const double *x)
{
    double rate = log10(x[1]);
    if (x[0] == 0)
        return 0.3 + 0.3 * (rate + 1) * (rate + 1) + (x[2] - 0.8) * (x[2] - 0.8);
    return 2 * (rate + 3) * (rate + 3) + 8 * (x[3] - 0.7) * (x[3] - 0.7);
}

static const struct search_problem {
    const char *name;
    double (*value)(const double *x);
    double lowest;
    double noise; /* standard deviation of what a trial reports */
    const char *parameters;
} search_problems[] = {
    {"branin", branin, 0.397887, 0, "[{path: a, uniform: {min: -5, max: 10}}, {path: b, uniform: {min: 0, max: 15}}]"},
    {"hartmann6", hartmann6, -3.32237, 0,
     "[{path: a, uniform: {min: 0, max: 1}}, {path: b, uniform: {min: 0, max: 1}}, {path: c, uniform: {min: 0, max: "
     "1}}, {path: d, uniform: {min: 0, max: 1}}, {path: e, uniform: {min: 0, max: 1}}, {path: f, uniform: {min: 0, "
     "max: 1}}]"},
    {"noisy", branin, 0.397887, 5, "[{path: a, uniform: {min: -5, max: 10}}, {path: b, uniform: {min: 0, max: 15}}]"},
    {"mixed", mixed, 0, 0,
     "[{path: optimizer, values: [SGD, Nesterov, AdamW, Lion]}, {path: rate, logUniform: {min: 1e-6, max: 1}}, {path: "
     "momentum, uniform: {min: 0, max: 0.99}, when: {parameter: optimizer, values: [SGD, Nesterov]}}, {path: units, "
     "integer: {min: 1, max: 64}, when: {parameter: optimizer, values: [AdamW, Lion]}}, {path: norm, values: [false, "
     "true]}]"},
    {"conditional", conditional, 0, 0,
     "[{path: optimizer, values: [SGD, Adam]}, {path: rate, logUniform: {min: 1e-5, max: 1}}, {path: momentum, "
     "uniform: "
     "{min: 0, max: 1}, when: {parameter: optimizer, values: [SGD]}}, {path: beta, uniform: {min: 0, max: 1}, when: "
     "{parameter: optimizer, values: [Adam]}}]"},
};

static const struct search_problem *const search_branin = &search_problems[0];
static const struct search_problem *const search_hartmann6 = &search_problems[1];
static const struct search_problem *const search_noisy = &search_problems[2];
static const struct search_problem *const search_mixed = &search_problems[3];
static const struct search_problem *const search_conditional = &search_problems[4];
#define SEARCH_PROBLEMS (sizeof search_problems / sizeof *search_problems)

/* ---------------------------------------------------------------- one sweep */

/* A sweep as the operator sees it, with room for the records of its trials. */
struct search {
    struct training_sweep sweep;
    struct trial_record results[SWEEP_RECORDED_TRIALS_MAX];
    const struct search_problem *problem;
    double best_reported, regret; /* of the best trial so far */
};

/* Release with search_release. */
static inline void search_init(struct search *search, const struct search_problem *problem, enum sweep_algorithm type,
                               int64_t seed)
{
    struct error error = ERROR_INIT;
    struct json *documents = NULL;
    SCOPED_FREE char *yaml = memory_format(
        "metadata: {name: s}\nspec: {template: {}, maxTrials: 1000, parameters: %s}\n", problem->parameters);
    *search = (struct search){.problem = problem, .best_reported = INFINITY};
    if (yaml_parse(yaml, strlen(yaml), SEARCH_YAML_MAX, &documents, &error) != 0 ||
        training_sweep_parse(json_first(documents), &search->sweep, &error) != 0) {
        fprintf(stderr, "%s: %s\n", problem->name, error.message);
        exit(70);
    }
    json_free(documents);
    search->sweep.status.results = search->results;
    search->sweep.algorithm.type = type;
    search->sweep.algorithm.seed = seed;
    search->sweep.algorithm.startup_trials = 10;
}

static inline void search_release(struct search *search)
{
    search->sweep.status.results = NULL;
    search->sweep.status.result_count = 0;
    training_sweep_release(&search->sweep);
}

/* The sum of four uniform numbers, scaled to the standard deviation 1. */
static inline double search_noise(int64_t seed, unsigned trial)
{
    struct philox_words words = philox((uint64_t)seed, trial, UINT64_MAX);
    double sum = 0;
    for (int i = 0; i < 4; i++)
        sum += words.word[i] / 4294967296.0 - 0.5;
    return sum * sqrt(3);
}

/* Runs the next trial and records it. */
static inline void search_trial(struct search *search)
{
    struct training_sweep *sweep = &search->sweep;
    const struct search_problem *problem = search->problem;
    unsigned trial = sweep->status.result_count;
    struct trial_record *record = &search->results[trial];
    double x[SEARCH_PARAMETERS_MAX];
    char objective[32];
    SCOPED_FREE char *values = suggestion_record(sweep, trial);
    record->values = arena_copy_string(&sweep->arena, values);
    sweep->status.result_count++;
    for (unsigned i = 0; i < sweep->parameter_count; i++)
        if (!sweep_recorded_number(sweep, i, trial, &x[i]))
            x[i] = NAN;
    double value = problem->value(x);
    double reported = value + problem->noise * search_noise(sweep->algorithm.seed, trial);
    snprintf(objective, sizeof objective, "%.17g", reported);
    record->state = TRIAL_SUCCEEDED;
    record->objective = arena_copy_string(&sweep->arena, objective);
    if (reported < search->best_reported) {
        search->best_reported = reported;
        search->regret = value - problem->lowest;
    }
}

static inline double search_regret(const struct search_problem *problem, enum sweep_algorithm type, int64_t seed,
                                   int trials)
{
    static struct search search;
    search_init(&search, problem, type, seed);
    for (int i = 0; i < trials; i++)
        search_trial(&search);
    search_release(&search);
    return search.regret;
}

static inline int search_by_size(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

/* Returns the regrets with the seeds from 0 on, ascending. Free with free(). */
static inline double *search_regrets(const struct search_problem *problem, enum sweep_algorithm type, int64_t seeds,
                                     int trials)
{
    double *regrets = memory_allocate((size_t)seeds, sizeof *regrets);
    for (int64_t seed = 0; seed < seeds; seed++)
        regrets[seed] = search_regret(problem, type, seed, trials);
    qsort(regrets, (size_t)seeds, sizeof *regrets, search_by_size);
    return regrets;
}

#endif
