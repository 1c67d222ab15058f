/* SPDX-License-Identifier: Apache-2.0
 *
 * What early stopping saves, on learning curves that are drawn from a seed: 256 trials of 1000 steps, ten at a time, judged by the
 * functions with which the operator judges them. A trial that pauses loses nothing, and goes on before another begins. A trial's loss
 * falls from 2.3 towards a last value, as a power of its steps. Trials that fall fast at first tend to end high, as with high learning
 * rates, so what is seen early misleads at times.
 *
 *     bench_early_stopping [SEEDS]    seeds from 0 on (200)
 *
 * For each rule: the median share of all steps that are taken, in how many sweeps the best trial of all is the best one, how much
 * higher the loss of the best one is in the others, and how many times as many steps are taken, on average, until trials in random
 * order that all run to their end reach a loss as low.
 *
 * Aim: with ASHA, stopping or pausing, at most a quarter of the steps, and at least twice as few as without for the same loss.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/job/sweep_template.h"
#include "common/memory.h"
#include "common/philox.h"
#include "operator/controller/sweep/early_stopping.h"
#include "operator/controller/sweep/promotion.h"

#define TRIALS 256
#define LANES 10
#define STEPS 1000
#define REPORT_STEPS 10
#define SEEDS 200
#define FIRST_LOSS 2.3

struct curve {
    double last, exponent;
};

/* One sweep whose trials are over. */
struct outcome {
    double share;    /* of the steps of all trials */
    double excess;   /* of the best loss over that of the best trial */
    double fraction; /* of what trials cost that all run to their end, until one is as good */
};

static double draw(uint64_t seed, uint64_t trial, uint64_t number)
{
    return philox(seed, trial, number).word[0] / 4294967296.0;
}

static struct curve curve_of(uint64_t seed, uint64_t trial)
{
    double rate = draw(seed, trial, 0), luck = draw(seed, trial, 1);
    return (struct curve){
        .last = 0.1 + 3 * (rate - 0.35) * (rate - 0.35) + 0.2 * luck,
        .exponent = 0.2 + 0.8 * rate + 0.2 * draw(seed, trial, 2),
    };
}

static double loss_at(const struct curve *curve, uint64_t seed, uint64_t trial, int64_t step)
{
    double noise = 0.1 * (draw(seed, trial, 10 + (uint64_t)step) - 0.5);
    return curve->last + (FIRST_LOSS - curve->last) * pow(1 + (double)step / REPORT_STEPS, -curve->exponent) + noise;
}

/* ---------------------------------------------------------------- one sweep */

struct search {
    struct training_sweep sweep;
    uint64_t seed;
    struct trial_record results[TRIALS];
    struct curve curves[TRIALS];
    int64_t steps[TRIALS];
    int64_t started;
    struct arena arena;
};

/* Judges a trial that has got its value for the rung. */
static enum trial_state state_after(struct search *search, int64_t trial, int rung)
{
    const char *why;
    if (sweep_pauses_trials(&search->sweep)) {
        why = promotion_judge(&search->sweep, search->results, search->started, trial, rung, &search->arena);
        return why ? TRIAL_PAUSED : TRIAL_RUNNING;
    }
    why = early_stopping_judge(&search->sweep, search->results, search->started, trial, rung, &search->arena);
    return why ? TRIAL_STOPPED : TRIAL_RUNNING;
}

/* The trial reports after some more steps. Returns whether its place is free. */
static bool advance(struct search *search, int64_t trial)
{
    struct trial_record *result = &search->results[trial];
    char text[DECIMAL_TEXT_MAX];
    int64_t step = search->steps[trial] += REPORT_STEPS;
    snprintf(text, sizeof text, "%.6g", loss_at(&search->curves[trial], search->seed, (uint64_t)trial, step));
    int rung = early_stopping_record(&search->sweep, step, text, result, &search->arena);
    if (step >= STEPS)
        result->state = TRIAL_SUCCEEDED;
    else if (rung >= 0)
        result->state = state_after(search, trial, rung);
    return result->state != TRIAL_RUNNING;
}

/* Returns the trial that gets the next free place; -1: none. */
static int64_t next_trial(struct search *search)
{
    int64_t trial =
        sweep_pauses_trials(&search->sweep) ? promotion_next(&search->sweep, search->results, search->started) : -1;
    if (trial >= 0)
        search->results[trial].state = TRIAL_RUNNING;
    else if (search->started < TRIALS)
        trial = search->started++;
    return trial;
}

static void run_trials(struct search *search)
{
    int64_t lanes[LANES], running;
    for (int lane = 0; lane < LANES; lane++)
        lanes[lane] = next_trial(search);
    do {
        running = 0;
        for (int lane = 0; lane < LANES; lane++) {
            if (lanes[lane] < 0 || advance(search, lanes[lane]))
                lanes[lane] = next_trial(search);
            running += lanes[lane] >= 0;
        }
    } while (running > 0);
}

static struct outcome judge(const struct search *search)
{
    double best = INFINITY, found = INFINITY;
    int64_t steps = 0, as_good = 0;
    for (int64_t i = 0; i < TRIALS; i++) {
        double last = loss_at(&search->curves[i], search->seed, (uint64_t)i, STEPS);
        best = fmin(best, last);
        if (search->results[i].state == TRIAL_SUCCEEDED)
            found = fmin(found, last);
        steps += search->steps[i];
    }
    for (int64_t i = 0; i < TRIALS; i++)
        as_good += loss_at(&search->curves[i], search->seed, (uint64_t)i, STEPS) <= found;
    /* In random order the first of so many good ones comes at this place on average. */
    double place = (TRIALS + 1.0) / (double)(as_good + 1);
    return (struct outcome){(double)steps / (TRIALS * STEPS), found - best, place * STEPS / (double)steps};
}

static struct outcome outcome_of(const struct sweep_early_stopping *rule, uint64_t seed)
{
    static struct search search;
    search = (struct search){.seed = seed};
    search.sweep.has_early_stopping = true;
    search.sweep.early_stopping = *rule;
    for (uint64_t i = 0; i < TRIALS; i++)
        search.curves[i] = curve_of(seed, i);
    run_trials(&search);
    struct outcome outcome = judge(&search);
    arena_release(&search.arena);
    return outcome;
}

/* ---------------------------------------------------------------- figures */

static int by_size(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

/* Sorts the values. */
static double quantile(double *values, int64_t count, double part)
{
    qsort(values, (size_t)count, sizeof *values, by_size);
    return values[(int64_t)(part * (double)(count - 1))];
}

static struct outcome measure(const char *name, const struct sweep_early_stopping *rule, int64_t seeds)
{
    SCOPED_FREE double *share = memory_allocate((size_t)seeds, sizeof *share);
    SCOPED_FREE double *excess = memory_allocate((size_t)seeds, sizeof *excess);
    SCOPED_FREE double *fraction = memory_allocate((size_t)seeds, sizeof *fraction);
    int64_t hits = 0;
    for (int64_t seed = 0; seed < seeds; seed++) {
        struct outcome outcome = outcome_of(rule, (uint64_t)seed);
        share[seed] = outcome.share;
        excess[seed] = outcome.excess;
        fraction[seed] = outcome.fraction;
        hits += outcome.excess <= 0;
    }
    struct outcome middle = {quantile(share, seeds, 0.5), quantile(excess, seeds, 0.5), quantile(fraction, seeds, 0.5)};
    printf("%-17s  %4.1f %% of the steps; the best trial of all in %.0f %% of the sweeps, in nine of ten its loss + "
           "%.3f or "
           "less; without, %.2f times the steps for the same loss\n",
           name, 100 * middle.share, 100.0 * (double)hits / (double)seeds, quantile(excess, seeds, 0.9),
           middle.fraction);
    fflush(stdout);
    return middle;
}

int main(int count, char **words)
{
    int64_t seeds = count > 1 ? strtoll(words[1], NULL, 10) : SEEDS;
    if (count > 2 || seeds < 1) {
        fprintf(stderr, "usage: bench_early_stopping [SEEDS]\n");
        return 64;
    }
    const struct sweep_early_stopping wanted[] = {
        {.type = EARLY_STOPPING_MEDIAN, .min_steps = 10, .startup_trials = 5},
        {.type = EARLY_STOPPING_MEDIAN, .min_steps = 50, .startup_trials = 5},
        {.type = EARLY_STOPPING_ASHA, .min_steps = 10, .reduction_factor = 4},
        {.type = EARLY_STOPPING_ASHA, .min_steps = 50, .reduction_factor = 4},
        {.type = EARLY_STOPPING_ASHA, .min_steps = 10, .reduction_factor = 4, .action = EARLY_STOPPING_PAUSE},
        {.type = EARLY_STOPPING_ASHA, .min_steps = 50, .reduction_factor = 4, .action = EARLY_STOPPING_PAUSE},
        {.type = EARLY_STOPPING_HYPERBAND, .min_steps = 10, .reduction_factor = 4, .brackets = 4},
        {.type = EARLY_STOPPING_HYPERBAND,
         .min_steps = 10,
         .reduction_factor = 4,
         .brackets = 4,
         .action = EARLY_STOPPING_PAUSE},
    };
    measure("Median from 10", &wanted[0], seeds);
    measure("Median from 50", &wanted[1], seeds);
    measure("ASHA from 10", &wanted[2], seeds);
    struct outcome asha = measure("ASHA from 50", &wanted[3], seeds);
    measure("Pauses from 10", &wanted[4], seeds);
    struct outcome pauses = measure("Pauses from 50", &wanted[5], seeds);
    measure("Hyperband from 10", &wanted[6], seeds);
    measure("and with pauses", &wanted[7], seeds);
    return asha.share <= 0.25 && asha.fraction >= 2 && pauses.share <= 0.25 && pauses.fraction >= 2 ? 0 : 1;
}
