/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads a model's initial parameters from a safetensors file: for the spec field init.path, for
 * parameter servers that start without a checkpoint, and for inference. The file has either our own
 * tensor names and shapes, or is GPT-2 as Hugging Face writes it. A program may compute them instead.
 *
 * For GPT-2, the prefix "transformer." is optional, Conv1D weights are transposed, and a table of
 * positions that is longer than the model's is truncated. F32, F16 and BF16 are converted to
 * float32. All tensors are checked before the first value is copied.
 */
#ifndef COXSWAIN_TRAIN_INITIAL_WEIGHTS_H
#define COXSWAIN_TRAIN_INITIAL_WEIGHTS_H

#include "common/error.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/model/program.h"
#include "worker/optimizer/training_state.h"

/* Loads the parameters into `state`. `model` is the layout of the whole model, which the file must
 * fit; the state takes the part that it holds (a pipeline's stages, slices of a layer, copies of a
 * table). ERROR_INVALID names the first tensor that is missing, left over or of another shape;
 * ERROR_UNSUPPORTED means another family of models. The state is unchanged in both cases. Optimizer
 * slots and progress are never changed. */
int initial_weights_load(struct training_state *state, const struct parameter_layout *model,
                         const struct safetensors_file *file, struct error *error);
/* Lets the program compute the parameters from the run's seed, state->progress.seed (program_initialise). ERROR_INVALID: a value is not
 * finite. */
int initial_weights_compute(struct training_state *state, struct program *program, struct error *error);

#endif
