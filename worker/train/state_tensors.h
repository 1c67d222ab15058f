/* SPDX-License-Identifier: Apache-2.0
 *
 * A training state as named tensors, for checkpoints and exports: parameters
 * under their own names ("conv1.weight"), optimizer slots as "adam.m/conv1.weight".
 * They are what the host sees of the state: call training_state_to_host before
 * reading them. Where the slots are a shard, their tensors are pieces of this rank's
 * own one (pieces.h); a restore reads them from whatever pieces there are.
 */
#ifndef COXSWAIN_TRAIN_STATE_TENSORS_H
#define COXSWAIN_TRAIN_STATE_TENSORS_H

#include "common/error.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/optimizer/training_state.h"

#define STATE_TENSOR_NAME_MAX 160

/* Data points into the state; names are owned. */
struct state_tensors {
    struct safetensors_tensor *tensors;
    char (*names)[STATE_TENSOR_NAME_MAX];
    const struct parameter_tensor **parameters; /* of each, which */
    bool reads;                                 /* to be filled: with copies, and under the names of whole tensors */
    unsigned count;
    unsigned parameter_count; /* the parameters come first */
    unsigned shared_count;    /* of those, what a part beside rank 0's leaves out, since rank 0 writes it */
    unsigned required_count;  /* then the optimizer's slots; what a strategy has added may be missing in a checkpoint */
};

/* All but copies of what another process holds. */
void state_tensors_init(struct state_tensors *tensors, const struct training_state *state);
void state_tensors_release(struct state_tensors *tensors);

/* Fills the state from a verified checkpoint. ERROR_INVALID names the first tensor that is missing or of another shape; the
 * state is unchanged then. Slots of the optimizer that the checkpoint lacks (another optimizer) are an error too; those that another
 * strategy would have added are zero then. */
int state_tensors_restore(struct training_state *state, const struct checkpoint_image *image, struct error *error);

#endif
