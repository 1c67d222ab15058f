/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/optimizer/shard_plan.h"

#include "worker/device/operations.h"
#include "worker/optimizer/gradient_norm.h"

/* Long stripes cost fewer launches and messages. This many blocks in one round of stripes, one
 * from each rank, are enough. */
#define ROUND_BLOCKS 16
#define ROUND_BLOCKS_LONGER 128
/* Each device gets pieces of at least this many stripes, if there are enough blocks, so that
 * shards have nearly the same length. */
#define STRIPES_WANTED 4

static int64_t at_least_one(int64_t value)
{
    return value > 0 ? value : 1;
}

void shard_plan_init(struct shard_plan *plan, const struct parameter_layout *layout, unsigned size, unsigned devices,
                     bool longer)
{
    int64_t places = (int64_t)size * devices, blocks = gradient_norm_blocks(layout->elements - layout->statistics);
    int64_t wanted = at_least_one(blocks / (STRIPES_WANTED * places));
    int64_t most = at_least_one((longer ? ROUND_BLOCKS_LONGER : ROUND_BLOCKS) / places);
    *plan = (struct shard_plan){.size = size,
                                .devices = devices,
                                .statistics = layout->statistics,
                                .elements = layout->elements,
                                .stripe = (wanted < most ? wanted : most) * devices * SQUARE_SUM_BLOCK};
}

static int64_t all_stripes(const struct shard_plan *plan)
{
    return (plan->elements - plan->statistics + plan->stripe - 1) / plan->stripe;
}

int64_t shard_stripes(const struct shard_plan *plan, unsigned owner)
{
    return (all_stripes(plan) + plan->size - 1 - owner) / plan->size;
}

int64_t shard_elements(const struct shard_plan *plan, unsigned owner)
{
    int64_t stripes = shard_stripes(plan, owner);
    if (stripes == 0)
        return 0;
    struct shard_stripe last = shard_stripe(plan, owner, stripes - 1);
    return last.slot + last.elements;
}

struct shard_stripe shard_stripe(const struct shard_plan *plan, unsigned owner, int64_t index)
{
    int64_t first = plan->statistics + (index * plan->size + owner) * plan->stripe, left = plan->elements - first;
    return (struct shard_stripe){
        .first = first, .elements = left < plan->stripe ? left : plan->stripe, .slot = index * plan->stripe};
}

unsigned shard_mirrored(const struct shard_plan *plan, unsigned rank)
{
    return (rank + plan->size - 1) % plan->size;
}

unsigned shard_mirror(const struct shard_plan *plan, unsigned rank)
{
    return (rank + 1) % plan->size;
}

unsigned shard_kept(const struct shard_plan *plan, unsigned rank, struct shard_kept ret_kept[SHARDS_KEPT_MAX])
{
    unsigned mirrored = shard_mirrored(plan, rank);
    ret_kept[0] = (struct shard_kept){.owner = rank};
    ret_kept[1] = (struct shard_kept){.owner = mirrored, .slot = shard_elements(plan, rank)};
    return mirrored == rank ? 1 : 2;
}

int64_t shard_kept_elements(const struct shard_plan *plan, unsigned rank)
{
    struct shard_kept kept[SHARDS_KEPT_MAX];
    const struct shard_kept *last = &kept[shard_kept(plan, rank, kept) - 1];
    return last->slot + shard_elements(plan, last->owner);
}

int64_t shard_piece_elements(const struct shard_plan *plan)
{
    return plan->stripe / plan->devices;
}

struct shard_stripe shard_piece(const struct shard_plan *plan, unsigned owner, int64_t index, unsigned device)
{
    struct shard_stripe stripe = shard_stripe(plan, owner, index);
    int64_t from = device * shard_piece_elements(plan), left = stripe.elements - from;
    if (left < 0)
        left = 0;
    return (struct shard_stripe){.first = stripe.first + from,
                                 .elements = left < shard_piece_elements(plan) ? left : shard_piece_elements(plan),
                                 .slot = stripe.slot + from};
}

int64_t shard_device_elements(const struct shard_plan *plan, unsigned owner, unsigned device)
{
    int64_t stripes = shard_stripes(plan, owner);
    if (stripes == 0)
        return 0;
    return (stripes - 1) * shard_piece_elements(plan) + shard_piece(plan, owner, stripes - 1, device).elements;
}
