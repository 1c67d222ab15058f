/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements --predict: applies a trained model to held-out examples and prints to standard output.
 * For one example it prints the picture, the most probable classes and the true class; for all
 * examples, the metrics of an evaluation in the format that the job itself uses. New examples
 * (--data) need no labels: for all of them it prints a line each, which begins with the file's name if
 * each example is a file. For the rows of a table it prints a CSV table instead: of the most probable
 * classes and their probabilities, or of the values. If new examples have labels, their accuracy, or
 * RMSE and MAE, follow on stderr. With --outputs it prints, instead, an NPY file
 * (common/data/npy.h) of the model's outputs for one or all of the examples, in their order. With
 * --json it prints the metrics of all held-out examples as JSON, for the page of `cox ui` and programs:
 * {"examples","loss","accuracy"|"perplexity"} and, of a classifier, "classes" (their names, if the
 * data has names), "confusion" and "worst" (class_report.h), the latter with a "picture" (picture.h)
 * of each image.
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
