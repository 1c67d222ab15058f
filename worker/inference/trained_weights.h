/* SPDX-License-Identifier: Apache-2.0
 *
 * The weights that a job has left: an export or any other safetensors file that
 * init.from takes, a job's checkpoint directory (its newest whole checkpoint), or
 * one checkpoint. Nothing is written: a directory may be of a job that still runs.
 */
#ifndef COXSWAIN_INFERENCE_TRAINED_WEIGHTS_H
#define COXSWAIN_INFERENCE_TRAINED_WEIGHTS_H

#include "common/buffer.h"
#include "common/error.h"
#include "worker/optimizer/training_state.h"

/* Fills the parameters of a state without slots; `told` gets what they are: "the checkpoint of step 300 in runs/digits". Errors
 * name the path, and what does not fit the model. */
int trained_weights_load(struct training_state *state, const char *path, struct buffer *told, struct error *error);

#endif
