/* SPDX-License-Identifier: Apache-2.0
 *
 * How the gradients of one process's devices are summed, as rounds of additions
 * in place. An addition runs on one device, over one slice of the vectors; a
 * round begins when the one before is done on every device. All vectors lie
 * where every device can reach them.
 *
 *   Auto          each device sums its own slice, in the tree's order
 *   ReduceToOne   the first device sums everything, in the tree's order
 *   Hierarchical  pairs of devices, then pairs of pairs, in the tree's order
 *   Ring          slices go round; each device adds its own as they pass. The order
 *                 follows the number of devices: the same bits for the same number
 */
#ifndef COXSWAIN_STRATEGY_DEVICE_REDUCTION_H
#define COXSWAIN_STRATEGY_DEVICE_REDUCTION_H

#include "worker/device/device.h"
#include "worker/model/parameter_layout.h"
#include "worker/strategy/reduction_tree.h"

struct device_reduction_options {
    enum collective_type algorithm;
    unsigned devices;
    const unsigned *owners; /* of each vector: the device that made it; ascending, none without one */
    unsigned inputs;
    const struct reduction_merge *merges; /* the tree over the vectors, inputs - 1 of them */
};

struct device_reduction;

/* ERROR_UNSUPPORTED for an algorithm that devices do not have. Options are not kept. */
int device_reduction_new(const struct device_reduction_options *options, struct device_reduction **ret_reduction,
                         struct error *error);
void device_reduction_free(struct device_reduction *reduction);

/* The sum comes to lie in inputs[0]. Enqueues the last round and returns; what follows on the stream of device d may use slice d
 * (replica_slice) of the sum with Auto, and all of it otherwise. */
int device_reduction_run(const struct device_reduction *reduction, struct device_stream *const *streams,
                         float *const *inputs, const struct parameter_layout *layout, struct error *error);

#endif
