/* SPDX-License-Identifier: Apache-2.0
 *
 * How good the values are that sweeps find: Branin and Hartmann6, two functions with known lowest values, are minimised with 100
 * trials, one after the other, by the function with which the operator chooses values. The regret is the lowest value found, minus
 * the lowest value that there is. Also: how long the operator thinks about one trial when a sweep has as many as it may.
 *
 *     bench_tpe [SEEDS]    seeds from 0 on (20)
 *
 * Aim: a lower median with TPE than with Random; a trial in under 10 ms. tests/bench/sweeps/run shows Optuna's regret beside it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/memory.h"
#include "operator/controller/sweep/suggestion.h"

#define TRIALS 100
#define TIMES 20
#define DIMENSIONS_MAX 6
#define OBJECTIVE_TEXT_MAX 32

/* ---------------------------------------------------------------- functions */

static double branin(const double *x)
{
    double bend = x[1] - 5.1 / (4 * M_PI * M_PI) * x[0] * x[0] + 5 / M_PI * x[0] - 6;
    return bend * bend + 10 * (1 - 1 / (8 * M_PI)) * cos(x[0]) + 10;
}

static double hartmann6(const double *x)
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

static const struct problem {
    const char *name;
    double (*value)(const double *x);
    double lowest;
    unsigned dimensions;
    struct sweep_range ranges[DIMENSIONS_MAX];
} problems[] = {
    {"branin", branin, 0.397887, 2, {{-5, 10}, {0, 15}}},
    {"hartmann6", hartmann6, -3.32237, 6, {{0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}}},
};

/* ---------------------------------------------------------------- one sweep */

/* A sweep as the operator sees it, with room for the records of its trials. */
struct search {
    struct training_sweep sweep;
    struct sweep_parameter parameters[DIMENSIONS_MAX];
    struct trial_record results[SWEEP_RECORDED_TRIALS_MAX];
    const struct problem *problem;
};

static void search_init(struct search *search, const struct problem *problem, enum sweep_algorithm type, int64_t seed)
{
    *search = (struct search){.problem = problem};
    for (unsigned i = 0; i < problem->dimensions; i++)
        search->parameters[i] = (struct sweep_parameter){.has_uniform = true, .uniform = problem->ranges[i]};
    search->sweep.parameters = search->parameters;
    search->sweep.parameter_count = problem->dimensions;
    search->sweep.status.results = search->results;
    search->sweep.algorithm.type = type;
    search->sweep.algorithm.seed = seed;
    search->sweep.algorithm.startup_trials = 10;
}

static void search_release(struct search *search)
{
    arena_release(&search->sweep.arena);
}

/* Runs the next trial and records it; returns its value. */
static double search_trial(struct search *search)
{
    struct training_sweep *sweep = &search->sweep;
    unsigned trial = sweep->status.result_count;
    double x[DIMENSIONS_MAX];
    char objective[OBJECTIVE_TEXT_MAX];
    for (unsigned i = 0; i < sweep->parameter_count; i++) {
        SCOPED_JSON *value = suggestion_value(sweep, i, trial);
        x[i] = json_number(value, NAN);
    }
    SCOPED_FREE char *record = suggestion_record(sweep, trial);
    double found = search->problem->value(x);
    snprintf(objective, sizeof objective, "%.17g", found);
    search->results[trial].state = TRIAL_SUCCEEDED;
    search->results[trial].values = arena_copy_string(&sweep->arena, record);
    search->results[trial].objective = arena_copy_string(&sweep->arena, objective);
    sweep->status.result_count++;
    return found;
}

static double regret_of(const struct problem *problem, enum sweep_algorithm type, int64_t seed)
{
    static struct search search;
    double lowest = INFINITY;
    search_init(&search, problem, type, seed);
    for (int i = 0; i < TRIALS; i++)
        lowest = fmin(lowest, search_trial(&search));
    search_release(&search);
    return lowest - problem->lowest;
}

/* ---------------------------------------------------------------- figures */

static int by_size(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

/* In an ascending list; between two elements, the mean of both by their distance. */
static double quantile(const double *sorted, int64_t count, double part)
{
    double at = part * (double)(count - 1);
    int64_t below = (int64_t)at, above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (sorted[above] - sorted[below]) * (at - (double)below);
}

/* Returns the median. */
static double measure(const struct problem *problem, enum sweep_algorithm type, int64_t seeds)
{
    SCOPED_FREE double *regrets = memory_allocate((size_t)seeds, sizeof *regrets);
    for (int64_t seed = 0; seed < seeds; seed++)
        regrets[seed] = regret_of(problem, type, seed);
    qsort(regrets, (size_t)seeds, sizeof *regrets, by_size);
    double median = quantile(regrets, seeds, 0.5);
    printf("%-9s  %-6s  regret after %d trials: median %.4g, quartiles %.4g and %.4g, of %ld seeds\n", problem->name,
           type == SWEEP_TPE ? "TPE" : "Random", TRIALS, median, quantile(regrets, seeds, 0.25),
           quantile(regrets, seeds, 0.75), (long)seeds);
    fflush(stdout);
    return median;
}

/* Processor time, as the machine may be busy. */
static double last_trial_ms(const struct problem *problem)
{
    static struct search search;
    search_init(&search, problem, SWEEP_RANDOM, 0);
    while (search.sweep.status.result_count < SWEEP_RECORDED_TRIALS_MAX - 1)
        search_trial(&search);
    search.sweep.algorithm.type = SWEEP_TPE;
    clock_t begin = clock();
    for (int i = 0; i < TIMES; i++) {
        SCOPED_FREE char *record = suggestion_record(&search.sweep, SWEEP_RECORDED_TRIALS_MAX - 1);
    }
    double taken = (double)(clock() - begin) / CLOCKS_PER_SEC * 1000 / TIMES;
    search_release(&search);
    return taken;
}

int main(int argc, char **argv)
{
    int64_t seeds = argc > 1 ? strtoll(argv[1], NULL, 10) : 20;
    bool missed = false;
    if (argc > 2 || seeds < 1) {
        fprintf(stderr, "usage: bench_tpe [SEEDS]\n");
        return 64;
    }
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++)
        missed |= measure(&problems[i], SWEEP_TPE, seeds) >= measure(&problems[i], SWEEP_RANDOM, seeds);
    double ms = last_trial_ms(&problems[1]);
    printf("the values of trial %d with %u parameters: %.2f ms\n", SWEEP_RECORDED_TRIALS_MAX, problems[1].dimensions,
           ms);
    return missed || ms > 10;
}
