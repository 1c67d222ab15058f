/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/sweep/promotion.h"

#include <math.h>
#include <stdlib.h>

#include "common/memory.h"
#include "operator/controller/sweep/early_stopping.h"
#include "operator/controller/sweep/ranked_trial.h"

#define ALL_BRACKETS (-1)

/* The trials of one bracket, or of all, that have come to one rung, the best one first. */
struct ranking {
    struct ranked_trial *trials;
    int64_t count;
};

/* Returns the trial's first loss at the rung or above it; NAN: it has not come there. */
static double loss_from(const struct training_sweep *sweep, const struct trial_record *results, int64_t trial, int rung)
{
    int top = early_stopping_top_rung(&results[trial]);
    while (rung < top && isnan(early_stopping_value(&results[trial], rung)))
        rung++;
    return early_stopping_loss(sweep, results, trial, rung);
}

/* Free its trials with free(). */
static struct ranking rank_trials(const struct training_sweep *sweep, const struct trial_record *results, int64_t count,
                                  int bracket, int rung)
{
    struct ranking ranking = {.trials = memory_allocate((size_t)count + 1, sizeof *ranking.trials)};
    for (int64_t i = 0; i < count; i++) {
        bool is_in = bracket == ALL_BRACKETS || early_stopping_bracket(sweep, i) == bracket;
        double loss = is_in ? loss_from(sweep, results, i, rung) : NAN;
        if (!isnan(loss))
            ranking.trials[ranking.count++] = (struct ranked_trial){loss, i};
    }
    ranked_trials_sort(ranking.trials, (size_t)ranking.count);
    return ranking;
}

static int64_t places_of(const struct training_sweep *sweep, const struct ranking *ranking)
{
    return ranking->count / sweep->early_stopping.reduction_factor;
}

int64_t promotion_pause_step(const struct training_sweep *sweep, int64_t trial)
{
    bool started = trial < sweep->status.result_count;
    int next = started ? early_stopping_top_rung(&sweep->status.results[trial]) + 1 : 0;
    int bracket = early_stopping_bracket(sweep, trial);
    return early_stopping_rung_steps(sweep, next > bracket ? next : bracket);
}

const char *promotion_judge(const struct training_sweep *sweep, const struct trial_record *results, int64_t count,
                            int64_t trial, int rung, struct arena *arena)
{
    int bracket = early_stopping_bracket(sweep, trial);
    if (rung < bracket)
        return NULL;
    struct ranking ranking = rank_trials(sweep, results, count, bracket, rung);
    int64_t places = places_of(sweep, &ranking), better = 0;
    while (better < ranking.count && ranking.trials[better].trial != trial)
        better++;
    free(ranking.trials);
    if (better < places)
        return NULL;
    return early_stopping_reason(sweep, trial, better, ranking.count, places, arena);
}

/* -1: none of the first `places` in the ranking waits at this rung. */
static int64_t first_paused(const struct ranking *ranking, int64_t places, const struct trial_record *results, int rung)
{
    for (int64_t i = 0; i < places; i++) {
        int64_t trial = ranking->trials[i].trial;
        if (results[trial].state == TRIAL_PAUSED && early_stopping_top_rung(&results[trial]) == rung)
            return trial;
    }
    return -1;
}

static int bracket_count(const struct training_sweep *sweep)
{
    return sweep->early_stopping.type == EARLY_STOPPING_HYPERBAND ? (int)sweep->early_stopping.brackets : 1;
}

static int highest_rung(const struct trial_record *results, int64_t count)
{
    int highest = -1;
    for (int64_t i = 0; i < count; i++) {
        int rung = results[i].state == TRIAL_PAUSED ? early_stopping_top_rung(&results[i]) : -1;
        highest = rung > highest ? rung : highest;
    }
    return highest;
}

int64_t promotion_next(const struct training_sweep *sweep, const struct trial_record *results, int64_t count)
{
    int64_t trial = -1;
    for (int rung = highest_rung(results, count); rung >= 0 && trial < 0; rung--)
        for (int bracket = 0; bracket < bracket_count(sweep) && trial < 0; bracket++) {
            struct ranking ranking = rank_trials(sweep, results, count, bracket, rung);
            trial = first_paused(&ranking, places_of(sweep, &ranking), results, rung);
            free(ranking.trials);
        }
    return trial;
}

int64_t promotion_last(const struct training_sweep *sweep, const struct trial_record *results, int64_t count)
{
    int rung = highest_rung(results, count);
    if (rung < 0)
        return -1;
    struct ranking ranking = rank_trials(sweep, results, count, ALL_BRACKETS, rung);
    int64_t trial = first_paused(&ranking, ranking.count, results, rung);
    free(ranking.trials);
    return trial;
}
