/* SPDX-License-Identifier: Apache-2.0
 *
 * --predict: what a model says of held-out examples, on standard output. Of one:
 * its picture, the most probable classes, and which it is. Of all: the metrics of
 * an evaluation, with the words and digits in which the job told them.
 */
#ifndef COXSWAIN_INFERENCE_PREDICT_H
#define COXSWAIN_INFERENCE_PREDICT_H

#include "worker/train/trainer.h"

struct prediction {
    int64_t class;
    double probability;
};
/* The most probable of `count` classes first, at most `most`; returns how many. */
unsigned predict_rank(const float *logits, int64_t count, struct prediction *ret_predictions, unsigned most);

int predict_run(const struct arguments *arguments, const struct identity *identity, const struct job_document *job,
                enum exit_code *ret_code, struct error *error);

#endif
