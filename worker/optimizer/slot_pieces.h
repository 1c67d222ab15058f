/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores a rank's optimizer slots on its GPUs, if the slots are sharded over ranks (shard_plan.h)
 * and the rank has several devices with separate memory. training_state.c owns them. Each device
 * holds its pieces of the shards that the rank stores, one after the other, shard by shard. On the
 * host, all slots of the rank lie in one array per slot.
 */
#ifndef COXSWAIN_OPTIMIZER_SLOT_PIECES_H
#define COXSWAIN_OPTIMIZER_SLOT_PIECES_H

#include "worker/device/device.h"
#include "worker/optimizer/shard_plan.h"

struct slot_pieces;

/* Allocates `arrays` arrays, one per slot of the optimizer, filled with zeros. `devices` has
 * plan->devices entries; the devices must outlive the result. */
int slot_pieces_new(struct device *const *devices, const struct shard_plan *plan, unsigned rank, unsigned arrays,
                    struct slot_pieces **ret_pieces, struct error *error);
void slot_pieces_free(struct slot_pieces *pieces);
/* Returns the number of floats of one array on a device. */
int64_t slot_pieces_elements(const struct shard_plan *plan, unsigned rank, unsigned device);

/* Returns where a device's piece of stripe `index` lies. `kept`: index into shard_kept's list. */
float *slot_pieces_at(const struct slot_pieces *pieces, unsigned device, unsigned array, unsigned kept, int64_t index);

/* Copy all slots of the rank to or from host[array]. Both return once all is copied. */
int slot_pieces_to_host(struct slot_pieces *pieces, float *const *host, struct error *error);
int slot_pieces_to_devices(struct slot_pieces *pieces, float *const *host, struct error *error);

#endif
