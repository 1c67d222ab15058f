/* SPDX-License-Identifier: Apache-2.0
 *
 * Cuts a model into stages for the Pipeline strategy: decides which layers run on which device. A stage is the layers
 * that one device computes.
 *
 * The layers of a stage form one part if possible. They form several parts if a layer of the stage
 * needs a value that another stage computes from the output of an earlier layer of this stage, as
 * in a branch that leaves the device and returns. A part runs its layers in order. Parts are
 * ordered too: each reads only from parts before it. A part's depth is the length of the longest
 * path to it; parts of equal depth (branches of the graph) run concurrently.
 *
 * The results have the same bits as those of a model that is not cut. Two rules serve this:
 *  - Some devices compute a GELU in the same operation as the matrix product before it (or the
 *    gradient of a GELU with the product after it), from values that are not yet rounded
 *    (device_joins_gelus). Then a GELU is in the same part as the dense layers directly before and
 *    after it.
 *  - If several parts read a value, its gradients are added in the order in which one device adds
 *    them: from the last reader to the first. Stages are cut into more parts where this order
 *    requires it.
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
    unsigned depths;         /* the greatest depth, plus 1 */
};

/* Returns the name of a layer. A graph with layout_only suffices. */
const char *graph_layer_name(const struct graph *graph, unsigned layer);
/* Returns whether the model's layers name their devices: all of them or none must. */
bool partition_is_given(const struct graph *graph);

/* Cuts the model as its layers say; a layer that names no device runs where the layer before it
 * runs. ERROR_INVALID: a stage has no layers, a device is not a stage, or layers are separated
 * that must stay together. */
int partition_given(const struct graph *graph, unsigned stages, struct graph_partition *ret_partition,
                    struct error *error);

/* Cuts the model into runs of consecutive layers, so that the costliest stage costs as little as
 * possible. `costs`: of each layer, in any unit (layer_cost.h). Layers that share memory or a launch (a rectifier that the layer before applies, a
 * joined GELU) stay together. ERROR_INVALID: there are fewer such groups than stages. */
int partition_by_cost(const struct graph *graph, unsigned stages, const double *costs,
                      struct graph_partition *ret_partition, struct error *error);

/* Cuts the model by a list of each layer's stage, as read from a checkpoint's manifest or
 * received from the chief. Fails as partition_given does. */
int partition_from_list(const struct graph *graph, unsigned stages, const unsigned *stage_of,
                        struct graph_partition *ret_partition, struct error *error);

void partition_release(struct graph_partition *partition);

#endif
