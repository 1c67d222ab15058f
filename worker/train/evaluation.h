/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes loss, accuracy, perplexity and RMSE of a model on a range of held-out examples, on one device.
 * Used for the crew's evaluations (crew_evaluation.h), by the evaluator, by the chief of parameter
 * servers and by --predict.
 *
 * evaluation_run returns sums (struct loss_sums, plain data). Ranks that evaluate disjoint ranges
 * add their sums; evaluation_metrics then divides the total.
 */
#ifndef COXSWAIN_TRAIN_EVALUATION_H
#define COXSWAIN_TRAIN_EVALUATION_H

#include "common/error.h"
#include "worker/data/dataset.h"
#include "worker/model/graph.h"

struct evaluation_metrics {
    double loss;       /* mean, natural logarithm */
    double accuracy;   /* share of correct classes; NAN unless examples have one class each */
    double perplexity; /* exp(loss) of a language model, which has a class at each position; else NAN */
    double rmse;       /* root of the mean squared error, in the labels' unit; else NAN */
};
/* `target_unit`: dataset_target_unit of the examples. */
struct evaluation_metrics evaluation_metrics(const struct example_format *format, double target_unit,
                                             const struct loss_sums *sums);
/* Returns the same for sums of the graph's losses on examples of the data set. */
struct evaluation_metrics evaluation_metrics_of(const struct graph *graph, const struct dataset *dataset,
                                                const struct loss_sums *sums);

/* The examples [first, first + count) of a dataset. */
struct evaluation_examples {
    const struct dataset *dataset;
    int64_t first, count;
    void *targets; /* room for the targets of all examples, as dataset_read gives them; NULL: they are not wanted */
};

/* Sums the loss over examples, in order, in batches of the graph's maximum. Synchronises the stream. */
int evaluation_run(struct graph *graph, struct device *device, struct device_stream *stream, const float *parameters,
                   const struct evaluation_examples *examples, struct loss_sums *ret_sums, struct error *error);

#endif
