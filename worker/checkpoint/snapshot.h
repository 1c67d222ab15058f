/* SPDX-License-Identifier: Apache-2.0
 *
 * A copy by value of the tensors of one step, so that training may change them
 * while the copy is written. The memory is kept from save to save; fresh memory costs
 * about as much time as the copying, so who knows how much it will be reserves it before.
 *
 * Taken in two parts, because copying takes long and training need not wait for
 * it until it changes something: snapshot_describe notes what there is, and
 * snapshot_copy, on whatever thread, copies the bytes, which stay in place and
 * unchanged until it returns.
 */
#ifndef COXSWAIN_CHECKPOINT_SNAPSHOT_H
#define COXSWAIN_CHECKPOINT_SNAPSHOT_H

#include "worker/checkpoint/safetensors.h"

struct snapshot {
    struct safetensors_tensor *tensors; /* names are copies; data points into `bytes` once copied */
    unsigned count;
    char *bytes;
    size_t capacity;
};

void snapshot_describe(struct snapshot *snapshot, const struct safetensors_tensor *tensors, unsigned count);
/* Room for so many bytes, touched already. May run beside snapshot_describe. */
int snapshot_reserve(struct snapshot *snapshot, size_t bytes, struct error *error);
/* ERROR_NO_SPACE when the copy does not fit in memory; the snapshot is empty then. */
int snapshot_copy(struct snapshot *snapshot, struct error *error);
void snapshot_release(struct snapshot *snapshot);

#endif
