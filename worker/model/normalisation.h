/* SPDX-License-Identifier: Apache-2.0
 *
 * Provides what layer norm and batch norm have in common: the last dimension holds the features, each with
 * its own weight and bias; the other dimensions count rows.
 */
#ifndef COXSWAIN_MODEL_NORMALISATION_H
#define COXSWAIN_MODEL_NORMALISATION_H

#include "worker/model/layer.h"

int64_t normalisation_width(const struct layer *layer);
/* Returns the rows of n examples. */
int64_t normalisation_rows(const struct layer *layer, int64_t n);
/* Implements layer_kind.resolve. The first two parameters are weight and bias. */
int normalisation_resolve(struct layer *layer, struct error *error);

#endif
