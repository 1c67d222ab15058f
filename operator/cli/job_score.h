/* SPDX-License-Identifier: Apache-2.0
 *
 * The score of a TrainingJob on its held-out examples: that of the weights with which `cox predict` predicts. A job that keeps the weights of
 * its best evaluation, and exports them or nothing, has that evaluation's score; any other job has the newest evaluation's.
 */
#ifndef COXSWAIN_CLI_JOB_SCORE_H
#define COXSWAIN_CLI_JOB_SCORE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/json.h"

/* NAN: unknown. */
struct job_score {
    double accuracy, loss, rmse; /* rmse: in the unit of the labels */
    /* The step of the best evaluation, whose score this is; -1: it is the newest evaluation's. */
    int64_t best_step;
};

void job_score_init(struct job_score *score);
/* Returns the score that status.progress has; before any best weights are kept, the newest evaluation's. */
struct job_score job_score(const struct json *job);
/* Returns whether the job exports weights at its end. */
bool job_exports(const struct json *job);
bool job_score_is_known(const struct job_score *score);

/* Appends the score: "98.3 %" (accuracy), "RMSE 2.31" or "loss 0.0625", and with best weights " (best, step 300)". Appends nothing if it is
 * unknown. */
void job_score_print(const struct job_score *score, struct buffer *out);

#endif
