/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies the tensors of one step, so that training may change them while the copy is written to disk.
 *
 * A snapshot is taken in two calls, so that training can go on during the copy. snapshot_describe copies the
 * names and shapes. snapshot_copy, on any thread, copies the bytes; training must not change a tensor until
 * it has returned. The memory is kept from save to save. Fresh memory costs about as much time as the copy
 * itself, so it can be reserved before the first save.
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
/* Allocates `bytes` bytes and touches their pages. May run concurrently with snapshot_describe. */
int snapshot_reserve(struct snapshot *snapshot, size_t bytes, struct error *error);
/* Copies the bytes. ERROR_NO_SPACE if they do not fit in memory; the snapshot is empty then. */
int snapshot_copy(struct snapshot *snapshot, struct error *error);
void snapshot_release(struct snapshot *snapshot);

#endif
