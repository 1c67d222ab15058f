/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists a training state as named tensors, for writing and reading checkpoints: parameters under
 * their own names ("conv1.weight"), optimizer slots as "adam.m/conv1.weight".
 *
 * The tensors point into the host's copy of the state: call training_state_to_host before reading
 * them. If the crew shards the optimizer slots, the slots listed are only those of this rank's own
 * shard, as pieces of tensors (pieces.h). A restore fills the state from whatever pieces the
 * checkpoint has, also if another number of ranks wrote them.
 */
#ifndef COXSWAIN_TRAIN_STATE_TENSORS_H
#define COXSWAIN_TRAIN_STATE_TENSORS_H

#include "common/error.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/optimizer/training_state.h"

#define STATE_TENSOR_NAME_MAX 160

/* Tensors whose data points into the state. The names are owned. */
struct state_tensors {
    struct safetensors_tensor *tensors;
    char (*names)[STATE_TENSOR_NAME_MAX];
    const struct parameter_tensor **parameters; /* the parameter of each tensor */
    bool reads; /* the list is for a restore: includes copies, uses the names of whole tensors */
    unsigned count;
    unsigned parameter_count; /* the parameters come first */
    unsigned shared_count;    /* parameters that only rank 0 writes; other ranks omit them from their parts */
    unsigned required_count;  /* parameters and optimizer slots; a strategy's own slots follow, which are optional */
};

/* Lists all tensors except copies of tensors that another process holds. */
void state_tensors_init(struct state_tensors *tensors, const struct training_state *state);
void state_tensors_release(struct state_tensors *tensors);

/* Fills the state from a verified checkpoint. ERROR_INVALID names the first tensor that is missing
 * or of another shape; the state is unchanged then. Missing optimizer slots (another optimizer) are
 * an error too; slots that another strategy would have added become zero. */
int state_tensors_restore(struct training_state *state, const struct checkpoint_image *image, struct error *error);

#endif
