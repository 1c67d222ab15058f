/* SPDX-License-Identifier: Apache-2.0
 *
 * The optimizer's slots of a rank that shares them out (shard_plan.h) among its
 * own devices as well, each of which has memory of its own: on each device its
 * pieces of the shards that the rank keeps, one behind the other, shard by shard.
 * The host has all of the rank's in one array.
 */
#ifndef COXSWAIN_OPTIMIZER_SLOT_PIECES_H
#define COXSWAIN_OPTIMIZER_SLOT_PIECES_H

#include "worker/device/device.h"
#include "worker/optimizer/shard_plan.h"

struct slot_pieces;

/* As many arrays as the optimizer has, zero at the start. `devices`: plan->devices of them, which outlive this. */
int slot_pieces_new(struct device *const *devices, const struct shard_plan *plan, unsigned rank, unsigned arrays,
                    struct slot_pieces **ret_pieces, struct error *error);
void slot_pieces_free(struct slot_pieces *pieces);
/* Floats of one array on a device. */
int64_t slot_pieces_elements(const struct shard_plan *plan, unsigned rank, unsigned device);

/* Where the piece of stripe `index` of kept shard `kept` lies on its device. */
float *slot_pieces_at(const struct slot_pieces *pieces, unsigned device, unsigned array, unsigned kept, int64_t index);

/* Array by array, all of the rank's; wait until all is copied. */
int slot_pieces_to_host(struct slot_pieces *pieces, float *const *host, struct error *error);
int slot_pieces_to_devices(struct slot_pieces *pieces, float *const *host, struct error *error);

#endif
