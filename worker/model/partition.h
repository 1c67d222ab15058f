/* SPDX-License-Identifier: Apache-2.0
 *
 * A model cut into stages: which of its layers run on which device. A stage is one
 * part, or several where its layers read what other stages make of its own, as in
 * a branch that rejoins the device it left. A part runs its layers in their order;
 * parts form an order of their own, in which each reads only from those before it.
 * Its depth is the length of the longest way to it, so that parts of equal depth
 * (branches of the graph) work side by side.
 *
 * Where a GELU is made of sums that are not rounded yet (device_joins_gelus), it
 * stays with the dense layers beside it, as in a model that is not cut.
 *
 * Gradients of a value that several parts read are added in the order in which one
 * device adds them, from the last reader to the first: parts are cut so that this
 * can be done.
 */
#ifndef COXSWAIN_MODEL_PARTITION_H
#define COXSWAIN_MODEL_PARTITION_H

#include "common/job/job_document.h"
#include "worker/model/graph.h"

struct graph_partition {
    unsigned stages, layers;
    unsigned *stage_of; /* by layer */
    unsigned parts;
    unsigned *part_of;       /* by layer */
    unsigned *stage_of_part; /* by part */
    unsigned *depth;         /* by part, from 0 */
    unsigned depths;         /* the greatest, plus 1 */
};

/* Layers of the model, in its order; a graph that plans nothing but the layout will do. */
const char *graph_layer_name(const struct graph *graph, unsigned layer);
/* Whether a model's layers say where they run: all or none of them need to. */
bool partition_is_given(const struct graph *graph);

/* As the layers say: one that names no device runs where the layer before it does. ERROR_INVALID names a
 * stage without layers, or layers that must not be cut from each other; so of a list. */
int partition_given(const struct graph *graph, unsigned stages, struct graph_partition *ret_partition,
                    struct error *error);

/* Consecutive layers, so that the costliest stage is as cheap as can be. A layer and the rectifier that it applies itself stay
 * together, and so does a GELU that is joined. ERROR_INVALID when there are fewer such groups than stages. */
int partition_by_cost(const struct graph *graph, unsigned stages, const double *costs,
                      struct graph_partition *ret_partition, struct error *error);

/* From a list of each layer's stage, as a checkpoint's manifest or the chief hands it on. */
int partition_from_list(const struct graph *graph, unsigned stages, const unsigned *stage_of,
                        struct graph_partition *ret_partition, struct error *error);

void partition_release(struct graph_partition *partition);

#endif
