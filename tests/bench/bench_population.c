/* SPDX-License-Identifier: Apache-2.0
 *
 * What a population (PBT) gives beside Random with as many steps. Both minimise a quadratic of 20 dimensions by gradient descent with
 * noisy gradients, and choose the learning rate with the functions with which the operator chooses it. A high rate soon comes near the
 * minimum, and a low one stays nearer to it. So the best rate falls while a model trains, and no constant rate is as good.
 *
 *     bench_population [SEEDS]    seeds from 0 on (200)
 *
 * A population of 10 trains for 10 generations of 100 steps; Random tries 10 rates of 1000 steps each. The third line is Random with 100
 * rates, ten times the steps: about the best that a constant rate can do. Also shown: the rates of the best member and its ancestors.
 *
 * Aim: a lower median of the best loss than Random with as many steps, and than Random with ten times the steps.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/memory.h"
#include "common/philox.h"
#include "operator/controller/sweep/population.h"
#include "operator/controller/sweep/suggestion.h"

#define DIMENSIONS 20
#define POPULATION 10
#define GENERATIONS 10
#define STEPS 1000 /* of a whole training */
#define TRIALS (POPULATION * GENERATIONS)
#define SEEDS 200
#define FIRST_VALUE 10.0
#define OBJECTIVE_TEXT_MAX 32

struct model {
    double x[DIMENSIONS];
};

struct search {
    struct training_sweep sweep;
    struct sweep_parameter rate;
    struct trial_record results[TRIALS];
    struct model models[TRIALS];
    double rates[TRIALS], losses[TRIALS];
};

/* From 1 down to 0.01. */
static double curvature(int dimension)
{
    return pow(10, -2.0 * dimension / (DIMENSIONS - 1));
}

static double loss_of(const struct model *model)
{
    double sum = 0;
    for (int i = 0; i < DIMENSIONS; i++)
        sum += 0.5 * curvature(i) * model->x[i] * model->x[i];
    return sum;
}

/* The noise of a gradient is uniform, with a variance of 1. */
static void train(struct model *model, double rate, int64_t steps, uint64_t seed, uint64_t trial)
{
    double curvatures[DIMENSIONS];
    for (int i = 0; i < DIMENSIONS; i++)
        curvatures[i] = curvature(i);
    for (int64_t step = 0; step < steps; step++)
        for (int i = 0; i < DIMENSIONS; i += 4) {
            struct philox_words noise = philox(seed, trial, (uint64_t)(step * DIMENSIONS + i));
            for (int j = 0; j < 4; j++)
                model->x[i + j] -=
                    rate * (curvatures[i + j] * model->x[i + j] + sqrt(12) * (noise.word[j] / 4294967296.0 - 0.5));
        }
}

static void search_init(struct search *search, enum sweep_algorithm type, int64_t seed)
{
    *search = (struct search){.rate = {.has_log_uniform = true, .log_uniform = {0.001, 1}}};
    search->sweep.parameters = &search->rate;
    search->sweep.parameter_count = 1;
    search->sweep.status.results = search->results;
    search->sweep.algorithm.type = type;
    search->sweep.algorithm.seed = seed;
    search->sweep.algorithm.population = POPULATION;
}

/* Runs the next trial and records it, as the operator does. */
static void run_trial(struct search *search, int64_t steps)
{
    struct training_sweep *sweep = &search->sweep;
    unsigned trial = sweep->status.result_count++;
    struct trial_record *result = &search->results[trial];
    char objective[OBJECTIVE_TEXT_MAX];
    result->parent = population_is_used(sweep) ? population_parent(sweep, search->results, trial) : FIELD_UNSET;
    SCOPED_JSON *value = suggestion_value(sweep, 0, trial);
    SCOPED_FREE char *record = suggestion_record(sweep, trial);
    struct model *model = &search->models[trial];
    for (int i = 0; i < DIMENSIONS; i++)
        model->x[i] = result->parent == FIELD_UNSET ? FIRST_VALUE : search->models[result->parent].x[i];
    search->rates[trial] = json_number(value, NAN);
    train(model, search->rates[trial], steps, (uint64_t)sweep->algorithm.seed, trial);
    search->losses[trial] = loss_of(model);
    snprintf(objective, sizeof objective, "%.17g", search->losses[trial]);
    result->state = TRIAL_SUCCEEDED;
    result->values = arena_copy_string(&sweep->arena, record);
    result->objective = arena_copy_string(&sweep->arena, objective);
}

/* Returns the best of the trials from `first` on. */
static int64_t best_of(const struct search *search, int64_t first)
{
    int64_t best = first;
    for (int64_t i = first; i < search->sweep.status.result_count; i++)
        if (search->losses[i] < search->losses[best])
            best = i;
    return best;
}

/* Returns the lowest loss; `ret_rates` gets the rates of the generations. */
static double loss_of_population(int64_t seed, double ret_rates[GENERATIONS])
{
    static struct search search;
    search_init(&search, SWEEP_PBT, seed);
    for (int i = 0; i < TRIALS; i++)
        run_trial(&search, STEPS / GENERATIONS);
    int64_t best = best_of(&search, TRIALS - POPULATION), ancestor = best;
    for (int i = GENERATIONS - 1; i >= 0; i--) {
        ret_rates[i] = search.rates[ancestor];
        ancestor = search.results[ancestor].parent;
    }
    arena_release(&search.sweep.arena);
    return search.losses[best];
}

static double loss_at_random(int64_t seed, int trials)
{
    static struct search search;
    search_init(&search, SWEEP_RANDOM, seed);
    for (int i = 0; i < trials; i++)
        run_trial(&search, STEPS);
    arena_release(&search.sweep.arena);
    return search.losses[best_of(&search, 0)];
}

static int by_size(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

/* Sorts the values. */
static double median(double *values, int64_t count)
{
    qsort(values, (size_t)count, sizeof *values, by_size);
    return values[(count - 1) / 2];
}

int main(int count, char **words)
{
    int64_t seeds = count > 1 ? strtoll(words[1], NULL, 10) : SEEDS, better = 0;
    if (count > 2 || seeds < 1) {
        fprintf(stderr, "usage: bench_population [SEEDS]\n");
        return 64;
    }
    SCOPED_FREE double *members = memory_allocate((size_t)seeds, sizeof *members);
    SCOPED_FREE double *random = memory_allocate((size_t)seeds, sizeof *random);
    SCOPED_FREE double *longer = memory_allocate((size_t)seeds, sizeof *longer);
    SCOPED_FREE double *rates = memory_allocate((size_t)seeds * GENERATIONS, sizeof *rates);
    for (int64_t seed = 0; seed < seeds; seed++) {
        double path[GENERATIONS];
        members[seed] = loss_of_population(seed, path);
        random[seed] = loss_at_random(seed, POPULATION);
        longer[seed] = loss_at_random(seed, TRIALS);
        better += members[seed] < random[seed];
        for (int i = 0; i < GENERATIONS; i++)
            rates[i * seeds + seed] = path[i];
    }
    double found = median(members, seeds), plain = median(random, seeds), constant = median(longer, seeds);
    printf("PBT, 10 members      loss %.3f, lower than Random's in %.0f %% of the sweeps; learning rates", found,
           100.0 * (double)better / (double)seeds);
    for (int i = 0; i < GENERATIONS; i++)
        printf(" %.3g", median(rates + i * seeds, seeds));
    printf("\nRandom, 10 trials    loss %.3f, with as many steps\nRandom, 100 trials   loss %.3f, with ten times the "
           "steps (medians of %" PRId64 ")\n",
           plain, constant, seeds);
    return found < plain && found < constant ? 0 : 1;
}
