/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads weights from a path, for trained_model.c. The path is an export or any other safetensors
 * file that init.path accepts, a job's checkpoint directory (its newest complete checkpoint), or
 * one checkpoint. Nothing is written, so the job may still be running.
 */
#ifndef COXSWAIN_INFERENCE_TRAINED_WEIGHTS_H
#define COXSWAIN_INFERENCE_TRAINED_WEIGHTS_H

#include "common/buffer.h"
#include "common/error.h"
#include "worker/optimizer/training_state.h"
#include "worker/train/trained_on.h"

/* Fills the parameters of a state without slots. *ret_trained_on receives the facts about the training
 * data that the weights contain (trained_on.h). Appends to `description` where the weights are from:
 * "the checkpoint of step 300 in runs/digits". Errors name the path and what does not fit the model. */
int trained_weights_load(struct training_state *state, const char *path, struct trained_on *ret_trained_on,
                         struct buffer *description, struct error *error);

#endif
