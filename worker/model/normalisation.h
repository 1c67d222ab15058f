/* SPDX-License-Identifier: Apache-2.0
 *
 * Contains the code that layer norm and batch norm share. Both see their input as rows of features: the last
 * dimension holds the features, each with its own weight and bias; the other dimensions count rows.
 */
#ifndef COXSWAIN_MODEL_NORMALISATION_H
#define COXSWAIN_MODEL_NORMALISATION_H

#include "worker/model/layer.h"

/* The share of a batch in the running statistics, unless the layer says another. */
#define NORMALISATION_MOMENTUM 0.1

/* Returns the number of features. */
int64_t normalisation_width(const struct layer *layer);
/* Returns how many rows n examples have. */
int64_t normalisation_rows(const struct layer *layer, int64_t n);
/* Implements layer_kind.resolve. The first two parameters are weight and bias. */
int normalisation_resolve(struct layer *layer, struct error *error);

#endif
