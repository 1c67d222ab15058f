/* SPDX-License-Identifier: Apache-2.0
 *
 * What layers that normalise have in common: the last dimension holds the features,
 * each with a weight and a bias of its own; everything before it counts rows.
 */
#ifndef COXSWAIN_MODEL_NORMALISATION_H
#define COXSWAIN_MODEL_NORMALISATION_H

#include "worker/model/layer.h"

int64_t normalisation_width(const struct layer *layer);
/* Of n examples. */
int64_t normalisation_rows(const struct layer *layer, int64_t n);
/* layer_kind.resolve: the first two parameters are weight and bias. */
int normalisation_resolve(struct layer *layer, struct error *error);

#endif
