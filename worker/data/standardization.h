/* SPDX-License-Identifier: Apache-2.0
 *
 * Gives the values of examples a mean of 0 and a standard deviation of 1 over the training examples
 * (data.standardize). Means and deviations are measured when a dataset is opened, in the order of the examples, so
 * that all members of a crew, and all later runs on the same files, have the same bits.
 */
#ifndef COXSWAIN_DATA_STANDARDIZATION_H
#define COXSWAIN_DATA_STANDARDIZATION_H

#include <stdint.h>

/* The statistics of one value (a column) over the training examples. */
struct column_moments {
    double mean;
    double squares;   /* sum of the squared distances from the mean */
    double deviation; /* standard deviation, which standardization_finish computes from `squares` */
};

struct standardization {
    int64_t examples, inputs, targets; /* `inputs` 0: inactive; `targets` 0: targets stay as they are */
    struct column_moments *moments;    /* of the inputs, then of the targets; owned */
    uint32_t digest;                   /* of the values that were added, the same on every machine */
};

void standardization_init(struct standardization *standardization, int64_t inputs, int64_t targets);
void standardization_copy(struct standardization *standardization, const struct standardization *from);
void standardization_release(struct standardization *standardization);

/* Adds an example to the statistics. Call standardization_finish after the last one. `targets` is not read if standardization->targets is 0. */
void standardization_add(struct standardization *standardization, const float *inputs, const float *targets);
void standardization_finish(struct standardization *standardization);

/* Converts the targets of one example, or a model's predictions of them, back in place: the inverse of standardization_apply. */
void standardization_restore(const struct standardization *standardization, float *targets);

/* Standardizes the values of an example in place: (value - mean) / deviation. If a value is the same in all training examples, its deviation
 * counts as 1. */
void standardization_apply(const struct standardization *standardization, float *inputs, float *targets);

#endif
