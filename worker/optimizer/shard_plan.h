/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans how the optimizer's slots (such as its momentum, one array per slot) are sharded over the
 * ranks of a crew (ZeRO-1; Rajbhandari et al. 2020; strategy.shardedOptimizer). A pure computation,
 * with the same result on every rank.
 *
 * The flat arrays begin with the running statistics of normalisations. The elements after these are
 * cut into stripes, each a whole number of the gradient norm's blocks, which are assigned to the ranks
 * in turn; the stripes of a rank are its shard. Each rank also mirrors (stores a copy of) the shard
 * of the rank before it, so that no slots are lost if one rank dies. A crew of one rank has no
 * mirror.
 *
 * A rank stores the slots of its own stripes one after the other, then those of the stripes that it
 * mirrors. If it has several devices with separate memory, each stripe is cut into one piece per
 * device.
 */
#ifndef COXSWAIN_OPTIMIZER_SHARD_PLAN_H
#define COXSWAIN_OPTIMIZER_SHARD_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/model/parameter_layout.h"

struct shard_plan {
    unsigned size;    /* number of ranks; 0: the slots are not sharded */
    unsigned devices; /* devices per rank over which its slots are split */
    int64_t statistics, elements, stripe;
};

/* Where stripe `index` of a shard begins in the flat arrays (`first`) and in the shard's slots
 * (`slot`). */
struct shard_stripe {
    int64_t first, elements, slot;
};

/* Plans the shards for `size` ranks. `longer`: use longer stripes, for devices on which launches
 * and messages cost more. */
void shard_plan_init(struct shard_plan *plan, const struct parameter_layout *layout, unsigned size, unsigned devices,
                     bool longer);
/* Return the number of stripes and of elements in the shard that `owner` owns. */
int64_t shard_stripes(const struct shard_plan *plan, unsigned owner);
int64_t shard_elements(const struct shard_plan *plan, unsigned owner);
struct shard_stripe shard_stripe(const struct shard_plan *plan, unsigned owner, int64_t index);
/* Returns the rank whose shard `rank` mirrors. */
unsigned shard_mirrored(const struct shard_plan *plan, unsigned rank);
/* Returns the rank that mirrors the shard of `rank`. */
unsigned shard_mirror(const struct shard_plan *plan, unsigned rank);

/* A shard that a rank stores, and where its slots begin among the rank's slots. */
struct shard_kept {
    unsigned owner;
    int64_t slot;
};
#define SHARDS_KEPT_MAX 2
/* Lists the shards that `rank` stores: its own, then the one that it mirrors. Returns how many. */
unsigned shard_kept(const struct shard_plan *plan, unsigned rank, struct shard_kept ret_kept[SHARDS_KEPT_MAX]);
/* Returns the number of elements that a rank stores in all its shards. */
int64_t shard_kept_elements(const struct shard_plan *plan, unsigned rank);

/* Returns the piece of a stripe that belongs to `device`. It may be empty. */
struct shard_stripe shard_piece(const struct shard_plan *plan, unsigned owner, int64_t index, unsigned device);
/* Returns the elements of a full piece. The pieces of a stripe follow each other in the order of
 * the devices. */
int64_t shard_piece_elements(const struct shard_plan *plan);
/* Returns how many elements of a shard `device` stores: its pieces, one after the other. */
int64_t shard_device_elements(const struct shard_plan *plan, unsigned owner, unsigned device);

#endif
