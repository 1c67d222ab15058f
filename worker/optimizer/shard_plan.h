/* SPDX-License-Identifier: Apache-2.0
 *
 * How the optimizer's slots of a model are shared out among the ranks of a crew
 * (ZeRO-1; Rajbhandari et al. 2020). What is behind the running statistics is
 * cut into stripes of whole blocks of the gradient's norm, dealt to the ranks in
 * turn. Each rank also mirrors the shard of the rank before it, so that one that
 * dies takes nothing with it; a lone rank has nobody who could.
 *
 * A rank keeps the slots of its stripes one behind the other, then those of the
 * stripes that it mirrors. Where it has several devices, each with memory of its
 * own, every stripe is cut into a piece for each of them.
 */
#ifndef COXSWAIN_OPTIMIZER_SHARD_PLAN_H
#define COXSWAIN_OPTIMIZER_SHARD_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/model/parameter_layout.h"

struct shard_plan {
    unsigned size;    /* ranks; 0: nothing is shared out */
    unsigned devices; /* of each rank that keep its slots between them */
    int64_t statistics, elements, stripe;
};

/* Stripe `index` of a shard: where it lies in the flat arrays, and in the shard's slots. */
struct shard_stripe {
    int64_t first, elements, slot;
};

/* `longer`: for devices to which a launch or a message costs more. */
void shard_plan_init(struct shard_plan *plan, const struct parameter_layout *layout, unsigned size, unsigned devices,
                     bool longer);
/* Of the shard that `owner` owns. */
int64_t shard_stripes(const struct shard_plan *plan, unsigned owner);
int64_t shard_elements(const struct shard_plan *plan, unsigned owner);
struct shard_stripe shard_stripe(const struct shard_plan *plan, unsigned owner, int64_t index);
/* The rank whose shard `rank` mirrors. */
unsigned shard_mirrored(const struct shard_plan *plan, unsigned rank);
/* The rank that mirrors the shard of `rank`. */
unsigned shard_mirror(const struct shard_plan *plan, unsigned rank);

/* A shard that a rank keeps, and where its slots begin in the rank's. */
struct shard_kept {
    unsigned owner;
    int64_t slot;
};
#define SHARDS_KEPT_MAX 2
/* Its own, then the one that it mirrors; returns how many. */
unsigned shard_kept(const struct shard_plan *plan, unsigned rank, struct shard_kept ret_kept[SHARDS_KEPT_MAX]);
/* Of all that a rank keeps. */
int64_t shard_kept_elements(const struct shard_plan *plan, unsigned rank);

/* What of a stripe is the device's; may be empty. */
struct shard_stripe shard_piece(const struct shard_plan *plan, unsigned owner, int64_t index, unsigned device);
int64_t shard_piece_elements(const struct shard_plan *plan); /* at most; the next piece is that of the next device */
/* Of the pieces of a shard that are the device's, one behind the other. */
int64_t shard_device_elements(const struct shard_plan *plan, unsigned owner, unsigned device);

#endif
