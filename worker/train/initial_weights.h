/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameters from a safetensors file: one of our own names and shapes, or GPT-2
 * as Hugging Face writes it (with or without "transformer." before each name;
 * Conv1D weights are turned, a longer table of positions is cut). F32, F16 and
 * BF16 become float32. Everything is checked before the first value is copied.
 */
#ifndef COXSWAIN_TRAIN_INITIAL_WEIGHTS_H
#define COXSWAIN_TRAIN_INITIAL_WEIGHTS_H

#include "common/error.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/optimizer/training_state.h"

/* `model`: of the whole model, which the file must fit; the state may hold a part of it (a pipeline's stages, slices of a
 * layer, copies of a table) and takes that. ERROR_INVALID names the first tensor that is missing, left over or of another shape;
 * ERROR_UNSUPPORTED other families of models. The state is unchanged then. Slots and position stay as they are. */
int initial_weights_load(struct training_state *state, const struct parameter_layout *model,
                         const struct safetensors_file *file, struct error *error);

#endif
