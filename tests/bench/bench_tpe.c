/* SPDX-License-Identifier: Apache-2.0
 *
 * How good the values are that sweeps find: the regret (sweep_search.h) after 100 trials, one after the other, on Branin and Hartmann6, on
 * Branin with noise, and on two problems with parameters that are tried with some choices only: a mixed one with choices, whole numbers and a
 * logarithmic range, and one in which the better of two optimizers is hard to tune. Also: how long the operator thinks about one trial when a sweep has as many as it may.
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
#include "tests/unit/operator/controller/sweep/sweep_search.h"

#define TRIALS 100
#define TIMES 20

/* In an ascending list; between two elements, the mean of both by their distance. */
static double quantile(const double *sorted, int64_t count, double part)
{
    double at = part * (double)(count - 1);
    int64_t below = (int64_t)at, above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (sorted[above] - sorted[below]) * (at - (double)below);
}

/* Returns the median. */
static double measure(const struct search_problem *problem, enum sweep_algorithm type, int64_t seeds)
{
    SCOPED_FREE double *regrets = search_regrets(problem, type, seeds, TRIALS);
    double mean = 0, median = quantile(regrets, seeds, 0.5);
    for (int64_t i = 0; i < seeds; i++)
        mean += regrets[i] / (double)seeds;
    printf("%-11s  %-6s  regret after %d trials: median %.4g, quartiles %.4g and %.4g, mean %.4g, of %ld seeds\n",
           problem->name, type == SWEEP_TPE ? "TPE" : "Random", TRIALS, median, quantile(regrets, seeds, 0.25),
           quantile(regrets, seeds, 0.75), mean, (long)seeds);
    fflush(stdout);
    return median;
}

/* Processor time, as the machine may be busy. */
static double last_trial_ms(const struct search_problem *problem)
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
    for (size_t i = 0; i < SEARCH_PROBLEMS; i++)
        missed |= measure(&search_problems[i], SWEEP_TPE, seeds) >= measure(&search_problems[i], SWEEP_RANDOM, seeds);
    double ms = last_trial_ms(search_hartmann6);
    printf("the values of trial %d with 6 parameters: %.2f ms\n", SWEEP_RECORDED_TRIALS_MAX, ms);
    return missed || ms > 10;
}
