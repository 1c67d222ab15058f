/* SPDX-License-Identifier: Apache-2.0
 *
 * A copy by value of the tensors of one step, so that training may change them
 * while the copy is written. The memory is kept from save to save.
 */
#ifndef COXSWAIN_CHECKPOINT_SNAPSHOT_H
#define COXSWAIN_CHECKPOINT_SNAPSHOT_H

#include "worker/checkpoint/safetensors.h"

struct snapshot {
    struct safetensors_tensor *tensors; /* names are copies, data points into `bytes` */
    unsigned count;
    char *bytes;
    size_t capacity;
};

/* ERROR_NO_SPACE when the copy does not fit in memory; the snapshot is empty then. */
int snapshot_take(struct snapshot *snapshot, const struct safetensors_tensor *tensors, unsigned count,
                  struct error *error);
void snapshot_release(struct snapshot *snapshot);

#endif
