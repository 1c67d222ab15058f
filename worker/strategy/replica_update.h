/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes the optimizer's step with the reduced gradient on all replicas of a process at once; replica_set.c calls it at
 * the end of a step. Work that is the same for all replicas is done once: it is divided into slices of the flat arrays,
 * one for each replica, and each slice is made of whole blocks of the gradient's norm, so that the norm has the same
 * bits for any number of devices.
 */
#ifndef COXSWAIN_STRATEGY_REPLICA_UPDATE_H
#define COXSWAIN_STRATEGY_REPLICA_UPDATE_H

#include "worker/model/parameter_layout.h"
#include "worker/strategy/replica.h"

struct replica_update {
    struct replica *const *replicas;
    unsigned count;
    bool
        shares_variables; /* all replicas have one state, and each updates a slice of it; else each updates its own, all alike */
    bool first_updates;    /* only the first replica updates its state; the others read copies of its parameters */
    const float *gradient; /* reduced; all devices can read it. NULL: each has it in its first contribution */
    double learning_rate;
    const float *controls; /* reduced control words of a crew of `size` ranks */
    unsigned size;
};

/* Fills a result from the reduced control words. This function and the next two are parts of replica_update, for callers that make the update
 * themselves. */
void replica_update_read(const struct replica_update *update, struct strategy_result *result);
/* Sets the step and advances the position, once every device has its parameters. */
void replica_update_advance(const struct replica_update *update, int64_t step);
/* Adjusts the loss scale after a step, which may have been skipped. */
void replica_update_rescale(const struct replica_update *update, bool skipped);

/* Takes the step. If it fails with ERROR_NOT_FINITE, nothing has changed; if the step is skipped, only the position and the loss scale
 * have. */
int replica_update(const struct replica_update *update, struct strategy_result *ret_result, struct error *error);

/* Sets [*ret_first, *ret_end) to slice `index` of `count` of the flat arrays; may be empty. */
void replica_slice(const struct parameter_layout *layout, unsigned index, unsigned count, int64_t *ret_first,
                   int64_t *ret_end);

#endif
