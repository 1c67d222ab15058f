/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums the gradients of one process's devices by in-place additions.
 *
 * Each addition runs on one device and covers one slice of the vectors, or all of them. All
 * vectors must lie in memory that every device can access. The additions are grouped in rounds:
 * all devices finish a round before the next one begins. "The tree" is that of reduction_tree.h; a
 * sum in its order has the same bits for any number of devices.
 *
 *   Auto          each device sums its own slice, in the tree's order; one round, which the caller need not wait for
 *   ReduceToOne   the first device sums everything, in the tree's order; one round
 *   Hierarchical  pairs of devices, then pairs of pairs, in the tree's order; a round for each level
 *   Ring          slices pass around a ring; each device adds its own gradients. The order of
 *                 additions, and so the bits, depend on the number of devices
 */
#ifndef COXSWAIN_STRATEGY_DEVICE_REDUCTION_H
#define COXSWAIN_STRATEGY_DEVICE_REDUCTION_H

#include "worker/device/device.h"
#include "worker/model/parameter_layout.h"
#include "worker/strategy/reduction_tree.h"

struct device_reduction_options {
    enum collective_type algorithm;
    unsigned devices;
    const unsigned *owners; /* of each vector: the device that made it; ascending, and each device owns at least one */
    unsigned inputs;
    const struct reduction_merge *merges; /* the reduction tree over the vectors: inputs - 1 merges */
};

struct device_reduction;

/* Plans a reduction. Fails with ERROR_UNSUPPORTED if devices of one process cannot run the
 * algorithm. `options` need not outlive the call. */
int device_reduction_new(const struct device_reduction_options *options, struct device_reduction **ret_reduction,
                         struct error *error);
void device_reduction_free(struct device_reduction *reduction);

/* Sums `inputs` into inputs[0]. With Auto, returns once the additions are queued: work queued
 * later on the stream of device d may use slice d (replica_slice) of the sum. With the other
 * algorithms, waits for all devices; the whole sum may then be used. */
int device_reduction_run(const struct device_reduction *reduction, struct device_stream *const *streams,
                         float *const *inputs, const struct parameter_layout *layout, struct error *error);

#endif
