/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/job_score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/contract/status_document.h"

void job_score_init(struct job_score *score)
{
    *score = (struct job_score){.accuracy = NAN, .loss = NAN, .rmse = NAN, .best_step = -1};
}

bool job_score_is_known(const struct job_score *score)
{
    return isfinite(score->accuracy) || isfinite(score->loss);
}

bool job_exports(const struct json *job)
{
    return json_at(job, "spec.coxswain.export") != NULL;
}

/* As coxswain-worker chooses weights to predict with (trained_model.h). */
static bool is_for_best(const struct json *job)
{
    return json_boolean_at(job, "spec.coxswain.checkpoint.keepBest", false) &&
           (!job_exports(job) || strcmp(json_string_at(job, "spec.coxswain.export.weights", ""), "Best") == 0);
}

struct job_score job_score(const struct json *job)
{
    struct job_score newest, best;
    job_score_init(&newest);
    job_score_init(&best);
    const struct json *metrics = json_at(job, "status.progress.metrics");
    for (const struct json *item = json_first(metrics); item; item = json_next(item)) {
        const char *name = json_string_at(item, "name", "");
        double value = strtod(json_string_at(item, "value", "nan"), NULL);
        if (strcmp(name, METRIC_VALIDATION_LOSS) == 0)
            newest.loss = value;
        else if (strcmp(name, METRIC_VALIDATION_ACCURACY) == 0)
            newest.accuracy = value;
        else if (strcmp(name, METRIC_VALIDATION_RMSE) == 0)
            newest.rmse = value;
        else if (strcmp(name, METRIC_BEST_RMSE) == 0)
            best.rmse = value;
        else if (strcmp(name, METRIC_BEST_ACCURACY) == 0)
            best.accuracy = value;
        else if (strcmp(name, METRIC_BEST_LOSS) == 0) {
            best.loss = value;
            best.best_step = json_integer_at(item, "step", 0);
        }
    }
    return is_for_best(job) && best.best_step >= 0 ? best : newest;
}

void job_score_print(const struct job_score *score, struct buffer *out)
{
    if (isfinite(score->accuracy))
        buffer_format(out, "%.1f %%", 100 * score->accuracy);
    else if (isfinite(score->rmse))
        buffer_format(out, "RMSE %.6g", score->rmse);
    else if (isfinite(score->loss))
        buffer_format(out, "loss %.4f", score->loss);
    if (job_score_is_known(score) && score->best_step >= 0)
        buffer_format(out, " (best, step %lld)", (long long)score->best_step);
}
