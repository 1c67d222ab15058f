/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements --predict: applies a trained model to examples and prints what it predicts, or how well it does.
 *
 * Which examples, and what is printed to standard output:
 * - one held-out example: its picture, the most probable classes and the true class;
 * - all held-out examples: the metrics of an evaluation, in the same format as the job's;
 * - new examples (--data), with or without labels: a line for each, which begins with the file's name if each example
 *   is a file. For the rows of a table, a CSV table instead: the most probable classes and their probabilities, or the
 *   values. If the examples have labels, their accuracy, or RMSE and MAE, are printed to stderr.
 *
 * With --outputs: instead, an NPY file (common/data/npy.h) of the model's outputs for the examples, in their order.
 * With --json: the metrics of all held-out examples as JSON, for the page of `cox ui` and for programs:
 * {"examples","loss","accuracy"|"perplexity"|"rmse"}; for a classifier also "classes" (their names, if the data has names),
 * "confusion" and "worst" (class_report.h), which has a "picture" (picture.h) of each image.
 */
#ifndef COXSWAIN_INFERENCE_PREDICT_H
#define COXSWAIN_INFERENCE_PREDICT_H

#include "worker/train/trainer.h"

struct prediction {
    int64_t class;
    double probability;
};
/* Fills in the most probable of `count` classes, best first, at most `most`; returns their number. `meaning`:
 * OUTPUT_LOGITS or OUTPUT_PROBABILITIES. */
unsigned predict_rank(const float *scores, int64_t count, enum output_meaning meaning,
                      struct prediction *ret_predictions, unsigned most);

/* Runs --predict. On failure *ret_code is the process's exit code. */
int predict_run(const struct arguments *arguments, const struct identity *identity, const struct job_document *job,
                enum exit_code *ret_code, struct error *error);

#endif
