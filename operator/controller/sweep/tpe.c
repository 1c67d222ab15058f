/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/sweep/tpe.h"

#include <math.h>
#include <stdbool.h>

#include "common/memory.h"
#include "common/scope.h"
#include "operator/controller/sweep/ranked_trial.h"

#define GOOD_SHARE 10 /* one of so many trials is good */
#define GOOD_MAX 25

static size_t good_count(const struct tpe_trial *trials, size_t count)
{
    size_t succeeded = 0, stopped = 0;
    for (size_t i = 0; i < count; i++) {
        succeeded += isfinite(trials[i].loss);
        stopped += trials[i].stopped;
    }
    size_t good = (succeeded + stopped + GOOD_SHARE - 1) / GOOD_SHARE;
    size_t most = succeeded < GOOD_MAX ? succeeded : GOOD_MAX;
    return good < most ? good : most;
}

/* Sets which trials are good: those with the lowest losses, of equal ones the earlier. */
static void mark_good(const struct tpe_trial *trials, size_t count, bool *is_good)
{
    size_t good = good_count(trials, count);
    SCOPED_FREE struct ranked_trial *ranks = memory_allocate(count + 1, sizeof *ranks);
    for (size_t i = 0; i < count; i++)
        ranks[i] = (struct ranked_trial){trials[i].loss, (int64_t)i};
    ranked_trials_sort(ranks, count);
    for (size_t i = 0; i < good; i++)
        is_good[ranks[i].trial] = true;
}

/* Makes the estimator of the trials that are good, or of those that are not. */
static struct parzen *estimator_of(const struct parzen_space *space, const struct tpe_trial *trials, size_t count,
                                   const bool *is_good, bool good)
{
    size_t found = 0;
    SCOPED_FREE double *values = memory_allocate(count + 1, sizeof *values);
    for (size_t i = 0; i < count; i++)
        if (is_good[i] == good && !isnan(trials[i].value))
            values[found++] = trials[i].value;
    return parzen_new(space, values, found);
}

static double best_candidate(const struct parzen *good, const struct parzen *others, const double draws[TPE_DRAWS])
{
    double best = 0, best_score = -INFINITY;
    for (size_t i = 0; i < TPE_CANDIDATES; i++) {
        double candidate = parzen_draw(good, draws[2 * i], draws[2 * i + 1]);
        double score = parzen_log_density(good, candidate) - parzen_log_density(others, candidate);
        if (score > best_score) {
            best = candidate;
            best_score = score;
        }
    }
    return best;
}

double tpe_suggest(const struct parzen_space *space, const struct tpe_trial *trials, size_t count,
                   const double draws[TPE_DRAWS])
{
    SCOPED_FREE bool *is_good = memory_allocate(count + 1, sizeof *is_good);
    mark_good(trials, count, is_good);
    struct parzen *good = estimator_of(space, trials, count, is_good, true);
    struct parzen *others = estimator_of(space, trials, count, is_good, false);
    double best = best_candidate(good, others, draws);
    parzen_free(good);
    parzen_free(others);
    return best;
}
