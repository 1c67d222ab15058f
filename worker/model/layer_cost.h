/* SPDX-License-Identifier: Apache-2.0
 *
 * What each layer of a model costs on a device, measured: there and back, with
 * made-up numbers. It needs memory for one layer at a time.
 */
#ifndef COXSWAIN_MODEL_LAYER_COST_H
#define COXSWAIN_MODEL_LAYER_COST_H

#include "worker/model/graph.h"

/* Seconds a layer (partition.h says how many there are) for a pass of `examples`: the best of a few tries. Layers that happen in
 * another's memory cost nothing. */
int layer_costs_measure(const struct graph *graph, struct device *device, int64_t examples, double *ret_seconds,
                        struct error *error);

#endif
