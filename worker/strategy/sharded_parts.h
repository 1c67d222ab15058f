/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the internals of a sharded optimizer (sharded_optimizer.h) for the two files that implement it:
 * sharded_optimizer.c takes a step, and sharded_agreement.c brings all ranks to the same step after one was lost. No
 * other file includes this header. Each shard is held by two ranks, its owner and its mirror.
 */
#ifndef COXSWAIN_STRATEGY_SHARDED_PARTS_H
#define COXSWAIN_STRATEGY_SHARDED_PARTS_H

#include "worker/strategy/sharded_optimizer.h"

/* The values that a rank needs for a step, besides the summed gradients. */
struct sharded_step_inputs {
    int64_t step;
    double norm, learning_rate;
};

struct sharded_optimizer {
    struct strategy_options options;
    struct replica_set *replicas;
    struct device_sums *device_sums;   /* sums on the devices by NCCL; NULL: in host memory, by the collective */
    struct crew_communicator *devices; /* for device_sums */
    struct collective_shards shards;   /* of the flat arrays */
    int64_t owner_blocks;              /* blocks of the gradient's norm per owner, at most; the stride of block_sums */
    double *block_sums;                /* shared memory: the blocks' sums of squares, owner by owner */
    double *ordered_sums;              /* the same in the order of the flat arrays */
    int64_t summed_step;               /* the step whose summed gradients are complete here; 0: none */
    struct sharded_step_inputs inputs; /* those of the last step, computed here or received */
    bool mixed_parameters;             /* own shards' parameters are a step newer than those of other ranks' shards */
};

/* Updates the slots and parameters of the shards that this rank owns and mirrors, and the state's
 * step. */
int sharded_optimizer_update(struct sharded_optimizer *optimizer, const struct sharded_step_inputs *inputs,
                             struct error *error);
/* Gives every rank the parameters of all shards. sources[i] is the rank that sends the shard that rank i
 * owns; if `sources` is NULL, each owner sends its shard to the ranks that do not mirror it. */
int sharded_optimizer_gather(struct sharded_optimizer *optimizer, struct collective *group, const unsigned *sources,
                             struct error *error);

#endif
