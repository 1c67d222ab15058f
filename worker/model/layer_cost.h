/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures what each layer of a model costs on a device, in a forward and backward pass with made-up values.
 * The Pipeline strategy cuts the model into stages by these costs, unless the job or a checkpoint says where
 * to cut. Needs memory for one layer at a time.
 */
#ifndef COXSWAIN_MODEL_LAYER_COST_H
#define COXSWAIN_MODEL_LAYER_COST_H

#include "worker/model/graph.h"

/* Measures the seconds that each layer (of graph_layer_count()) takes for a pass of `examples`:
 * the fastest of several runs. In-place layers cost 0. */
int layer_costs_measure(const struct graph *graph, struct device *device, int64_t examples, double *ret_seconds,
                        struct error *error);

#endif
