/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/sweep/early_stopping.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/job/sweep_bracket.h"
#include "common/memory.h"

#define RUNGS_MAX 24
#define RUNGS_TEXT_MAX (RUNGS_MAX * (DECIMAL_TEXT_MAX + 1))
#define MEDIAN_FACTOR 2
#define REASON_MAX 256

/* ---------------------------------------------------------------- rungs */

static int64_t factor_of(const struct training_sweep *sweep)
{
    return sweep->early_stopping.type == EARLY_STOPPING_MEDIAN ? MEDIAN_FACTOR : sweep->early_stopping.reduction_factor;
}

int early_stopping_rung(const struct training_sweep *sweep, int64_t steps)
{
    if (!sweep->has_early_stopping || steps < sweep->early_stopping.min_steps)
        return -1;
    int rung = 0;
    int64_t factor = factor_of(sweep);
    for (int64_t left = steps / sweep->early_stopping.min_steps; left >= factor && rung < RUNGS_MAX - 1; left /= factor)
        rung++;
    return rung;
}

int64_t early_stopping_rung_steps(const struct training_sweep *sweep, int rung)
{
    int64_t steps = sweep->early_stopping.min_steps;
    if (rung >= RUNGS_MAX)
        return INT64_MAX;
    for (int i = 0; i < rung; i++)
        if (__builtin_mul_overflow(steps, factor_of(sweep), &steps))
            return INT64_MAX;
    return steps;
}

/* ---------------------------------------------------------------- values */

/* The text of a rung's value; its length is 0 if there is none. */
static const char *find_value(const struct trial_record *result, int rung, size_t *ret_length)
{
    const char *text = result->rungs ? result->rungs : "";
    for (int i = 0; i < rung && *text; i++) {
        text += strcspn(text, ",");
        text += *text == ',';
    }
    *ret_length = strcspn(text, ",");
    return text;
}

double early_stopping_value(const struct trial_record *result, int rung)
{
    size_t length;
    const char *text = find_value(result, rung, &length);
    char *end;
    double value = length > 0 ? strtod(text, &end) : NAN;
    return length > 0 && end == text + length && isfinite(value) ? value : NAN;
}

/* How many values are recorded, empty ones included. */
static int value_count(const struct trial_record *result)
{
    if (!result->rungs)
        return 0;
    int count = 1;
    for (const char *at = result->rungs; *at && count < RUNGS_MAX; at++)
        count += *at == ',';
    return count;
}

int early_stopping_top_rung(const struct trial_record *result)
{
    int rung = value_count(result) - 1;
    while (rung >= 0 && isnan(early_stopping_value(result, rung)))
        rung--;
    return rung;
}

double early_stopping_loss(const struct training_sweep *sweep, const struct trial_record *results, int64_t trial,
                           int rung)
{
    const struct trial_record *result = &results[trial];
    if (result->state == TRIAL_DIVERGED) {
        int next = early_stopping_top_rung(result) + 1, bracket = early_stopping_bracket(sweep, trial);
        if (rung == (next > bracket ? next : bracket))
            return INFINITY;
    }
    double value = early_stopping_value(result, rung);
    return sweep->objective.goal == GOAL_MAXIMIZE ? -value : value;
}

int early_stopping_record(const struct training_sweep *sweep, int64_t steps, const char *value,
                          struct trial_record *result, struct arena *arena)
{
    int rung = early_stopping_rung(sweep, steps);
    if (rung < 0 || strlen(value) > DECIMAL_TEXT_MAX || !isnan(early_stopping_value(result, rung)))
        return -1;
    SCOPED_BUFFER text = BUFFER_INIT(RUNGS_TEXT_MAX);
    int known = value_count(result);
    for (int i = 0; i <= rung || i < known; i++) {
        size_t length;
        const char *earlier = find_value(result, i, &length);
        if (i > 0)
            buffer_append_byte(&text, ',', NULL);
        if (i == rung)
            buffer_append_string(&text, value, NULL);
        else
            buffer_format(&text, "%.*s", (int)(length < DECIMAL_TEXT_MAX ? length : DECIMAL_TEXT_MAX), earlier);
    }
    result->rungs = arena_copy_string(arena, buffer_text(&text));
    return rung;
}

/* ---------------------------------------------------------------- decisions */

int early_stopping_bracket(const struct training_sweep *sweep, int64_t trial)
{
    const struct sweep_early_stopping *rule = &sweep->early_stopping;
    if (!sweep->has_early_stopping || rule->type != EARLY_STOPPING_HYPERBAND)
        return 0;
    return (int)sweep_bracket_of(rule->brackets, rule->reduction_factor, trial);
}

static int by_size(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static double best_loss(const struct training_sweep *sweep, const struct trial_record *results, int64_t trial,
                        int last_rung)
{
    double best = INFINITY;
    for (int rung = 0; rung <= last_rung; rung++)
        best = fmin(best, early_stopping_loss(sweep, results, trial, rung)); /* fmin ignores what is not there */
    return best;
}

/* Of the losses that the others had at the rung; NAN: none has reached it. */
static double median_of_others(const struct training_sweep *sweep, const struct trial_record *results, int64_t count,
                               int64_t trial, int rung)
{
    SCOPED_FREE double *losses = memory_allocate((size_t)count + 1, sizeof *losses);
    size_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        double loss = early_stopping_loss(sweep, results, i, rung);
        if (i != trial && !isnan(loss))
            losses[found++] = loss;
    }
    if (found == 0)
        return NAN;
    qsort(losses, found, sizeof *losses, by_size);
    return (losses[(found - 1) / 2] + losses[found / 2]) / 2;
}

static const char *judge_by_median(const struct training_sweep *sweep, const struct trial_record *results,
                                   int64_t count, int64_t trial, int rung, struct arena *arena)
{
    char reason[REASON_MAX];
    int64_t over = 0;
    for (int64_t i = 0; i < count; i++)
        over += results[i].state != TRIAL_RUNNING;
    double median = median_of_others(sweep, results, count, trial, rung);
    if (over < sweep->early_stopping.startup_trials || isnan(median) ||
        best_loss(sweep, results, trial, rung) <= median)
        return NULL;
    snprintf(reason, sizeof reason, "the median of the other trials is %.6g",
             sweep->objective.goal == GOAL_MAXIMIZE ? -median : median);
    return arena_copy_string(arena, reason);
}

const char *early_stopping_reason(const struct training_sweep *sweep, int64_t trial, int64_t better, int64_t reached,
                                  int64_t places, struct arena *arena)
{
    char reason[REASON_MAX], bracket[REASON_MAX] = "";
    if (sweep->early_stopping.type == EARLY_STOPPING_HYPERBAND)
        snprintf(bracket, sizeof bracket, " of bracket %d", early_stopping_bracket(sweep, trial));
    snprintf(reason, sizeof reason,
             "%" PRId64 " of the %" PRId64 " trials%.40s that reached this rung are better, and only %" PRId64
             " continue",
             better, reached, bracket, places);
    return arena_copy_string(arena, reason);
}

static const char *judge_by_rank(const struct training_sweep *sweep, const struct trial_record *results, int64_t count,
                                 int64_t trial, int rung, struct arena *arena)
{
    double loss = early_stopping_loss(sweep, results, trial, rung);
    int64_t reached = 0, better = 0;
    int bracket = early_stopping_bracket(sweep, trial);
    if (rung < bracket)
        return NULL;
    for (int64_t i = 0; i < count; i++) {
        if (early_stopping_bracket(sweep, i) != bracket)
            continue;
        double other = early_stopping_loss(sweep, results, i, rung);
        reached += !isnan(other);
        better += other < loss;
    }
    int64_t places = reached / sweep->early_stopping.reduction_factor;
    if (places == 0 || better < places)
        return NULL;
    return early_stopping_reason(sweep, trial, better, reached, places, arena);
}

const char *early_stopping_judge(const struct training_sweep *sweep, const struct trial_record *results, int64_t count,
                                 int64_t trial, int rung, struct arena *arena)
{
    return sweep->early_stopping.type == EARLY_STOPPING_MEDIAN
               ? judge_by_median(sweep, results, count, trial, rung, arena)
               : judge_by_rank(sweep, results, count, trial, rung, arena);
}
