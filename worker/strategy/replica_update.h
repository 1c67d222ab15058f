/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes the optimizer's step with a reduced gradient on all replicas of a process at once. Work
 * that is the same for all replicas is divided into slices, each of whole blocks of the gradient's
 * norm.
 */
#ifndef COXSWAIN_STRATEGY_REPLICA_UPDATE_H
#define COXSWAIN_STRATEGY_REPLICA_UPDATE_H

#include "worker/model/parameter_layout.h"
#include "worker/strategy/replica.h"

struct replica_update {
    struct replica *const *replicas;
    unsigned count;
    bool shares_variables; /* one state for all: each updates a slice of it. Else each its own, and the same */
    bool first_updates;    /* alone, all of it: the others read copies of its parameters */
    const float *gradient; /* reduced; all devices can read it. NULL: each has it in its first contribution */
    double learning_rate;
    const float *controls; /* reduced, of a crew of `size` */
    unsigned size;
};

/* The two ends of it, for those that take the step in between themselves: what the reduced
 * control words say of the batch; and position and step, once every device has its parameters. */
void replica_update_read(const struct replica_update *update, struct strategy_result *result);
void replica_update_advance(const struct replica_update *update, int64_t step);
/* After that: the scale of the loss as what became of the step makes it. */
void replica_update_rescale(const struct replica_update *update, bool skipped);

/* Nothing has changed when it fails with ERROR_NOT_FINITE; nothing but the position where the
 * step is skipped. */
int replica_update(const struct replica_update *update, struct strategy_result *ret_result, struct error *error);

/* The part [*ret_first, *ret_end) of the flat arrays that falls to one of `count`; may be empty. */
void replica_slice(const struct parameter_layout *layout, unsigned index, unsigned count, int64_t *ret_first,
                   int64_t *ret_end);

#endif
