/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the internals of a sharded optimizer (sharded_optimizer.h), for the two files that together take its steps
 * and repair them: sharded_optimizer.c takes a step, and sharded_agreement.c brings all ranks to the same step after
 * one of them was lost. Only they include this header.
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
    int64_t owner_blocks;              /* room for the norm's blocks of each owner; not all of it is used */
    double *sums;                      /* shared memory: the blocks' sums, owner by owner */
    double *ordered;                   /* the same in the order of the flat arrays */
    int64_t summed_step;               /* the step with complete sums here; 0: none */
    struct sharded_step_inputs inputs; /* the last ones that were computed or received */
    bool mixed_parameters;             /* own shards' parameters are a step newer than those of other ranks' shards */
};

/* Updates the slots and parameters of the shards that this rank owns and mirrors, and the
 * state's position. */
int sharded_optimizer_update(struct sharded_optimizer *optimizer, const struct sharded_step_inputs *inputs,
                             struct error *error);
/* Collects the parameters from the ranks that hold the shards (`sources`). NULL: the owners send
 * them to the ranks that do not mirror them. */
int sharded_optimizer_gather(struct sharded_optimizer *optimizer, struct collective *group, const unsigned *sources,
                             struct error *error);

#endif
