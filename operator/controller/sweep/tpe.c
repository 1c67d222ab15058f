/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/sweep/tpe.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "common/memory.h"
#include "common/scope.h"
#include "operator/controller/sweep/ranked_trial.h"

#define GOOD_PERCENT 15
#define GOOD_MAX 25

/* The earlier trials, and what was learned from them. */
struct evidence {
    const struct tpe_trial *trials;
    size_t count;
    struct parzen *good, *others;
};

static size_t good_count(const struct tpe_trial *trials, size_t count)
{
    size_t succeeded = 0, stopped = 0;
    for (size_t i = 0; i < count; i++) {
        succeeded += isfinite(trials[i].loss);
        stopped += trials[i].stopped;
    }
    size_t good = ((succeeded + stopped) * GOOD_PERCENT + 99) / 100;
    size_t most = succeeded < GOOD_MAX ? succeeded : GOOD_MAX;
    return good < most ? good : most;
}

/* Returns whether two trials belong to one group: the same parameters are tried in both. */
static bool is_same_group(const double *one, const double *other, size_t parameters)
{
    for (size_t i = 0; i < parameters; i++)
        if (isnan(one[i]) != isnan(other[i]))
            return false;
    return true;
}

/* Sets which trials of one group, or of all (NULL), are good: those with the lowest losses, of equal ones the earlier. The others are left
 * as they are. */
static void mark_good(const struct tpe_search *search, const struct tpe_trial *trials, size_t count,
                      const double *group, bool *is_good)
{
    size_t members = 0;
    SCOPED_FREE struct tpe_trial *own = memory_allocate(count + 1, sizeof *own);
    SCOPED_FREE struct ranked_trial *ranks = memory_allocate(count + 1, sizeof *ranks);
    for (size_t i = 0; i < count; i++) {
        if (group && !is_same_group(trials[i].point, group, search->parameters))
            continue;
        is_good[i] = false;
        ranks[members] = (struct ranked_trial){trials[i].loss, (int64_t)i};
        own[members++] = trials[i];
    }
    size_t good = good_count(own, members);
    ranked_trials_sort(ranks, members);
    for (size_t i = 0; i < good; i++)
        is_good[ranks[i].trial] = true;
}

/* Makes the estimator of the trials that are good, or of those that are not. */
static struct parzen *estimator_of(const struct tpe_search *search, const struct tpe_trial *trials, size_t count,
                                   const bool *is_good, bool good)
{
    size_t found = 0;
    SCOPED_FREE const double **points = memory_allocate(count + 1, sizeof *points);
    for (size_t i = 0; i < count; i++)
        if (is_good[i] == good)
            points[found++] = trials[i].point;
    return parzen_new(search->spaces, search->parameters, points, found);
}

size_t tpe_draw_count(size_t parameters)
{
    return TPE_CANDIDATES * (parameters + 1);
}

/* Returns whether an earlier trial had just these values. */
static bool is_repeat(const struct evidence *evidence, const double *candidate, size_t parameters)
{
    for (size_t i = 0; i < evidence->count; i++) {
        const double *point = evidence->trials[i].point;
        size_t equal = 0;
        while (equal < parameters &&
               (point[equal] == candidate[equal] || (isnan(point[equal]) && isnan(candidate[equal]))))
            equal++;
        if (equal == parameters)
            return true;
    }
    return false;
}

static void draw_candidate(const struct tpe_search *search, const struct parzen *good, const double *draws,
                           double *ret_point)
{
    parzen_draw(good, draws, ret_point);
    if (search->settle)
        search->settle(search->context, ret_point);
}

/* A candidate that repeats a trial is taken only if all do, one of another group only if all of the group repeat trials. */
static void best_candidate(const struct tpe_search *search, const struct evidence *evidence, const double *group,
                           const double *draws, double *ret_point)
{
    size_t parameters = search->parameters;
    SCOPED_FREE double *candidate = memory_allocate(parameters, sizeof *candidate);
    double best_score = -INFINITY;
    int best_rank = -1;
    for (size_t i = 0; i < TPE_CANDIDATES; i++) {
        draw_candidate(search, evidence->good, draws + i * (parameters + 1), candidate);
        double score = parzen_log_density(evidence->good, candidate) - parzen_log_density(evidence->others, candidate);
        int rank = 2 * !is_repeat(evidence, candidate, parameters) + is_same_group(candidate, group, parameters);
        if (rank > best_rank || (rank == best_rank && score > best_score)) {
            memcpy(ret_point, candidate, parameters * sizeof *candidate);
            best_score = score;
            best_rank = rank;
        }
    }
}

void tpe_suggest(const struct tpe_search *search, const struct tpe_trial *trials, size_t count, const double *draws,
                 double *ret_point)
{
    SCOPED_FREE bool *is_good = memory_allocate(count + 1, sizeof *is_good);
    SCOPED_FREE double *group = memory_allocate(search->parameters, sizeof *group);
    mark_good(search, trials, count, NULL, is_good);
    struct parzen *good_of_all = estimator_of(search, trials, count, is_good, true);
    draw_candidate(search, good_of_all, draws, group);
    parzen_free(good_of_all);
    mark_good(search, trials, count, group, is_good);
    struct evidence evidence = {trials, count, estimator_of(search, trials, count, is_good, true),
                                estimator_of(search, trials, count, is_good, false)};
    best_candidate(search, &evidence, group, draws, ret_point);
    parzen_free(evidence.good);
    parzen_free(evidence.others);
}
