/* SPDX-License-Identifier: Apache-2.0
 *
 * A job's model with what it has learnt, on the CPU: nothing of the job's run is
 * needed or touched, neither a crew nor a GPU.
 */
#ifndef COXSWAIN_INFERENCE_TRAINED_MODEL_H
#define COXSWAIN_INFERENCE_TRAINED_MODEL_H

#include "worker/train/trainer.h"

struct trained_model {
    struct job_document job; /* borrows all of the given one */
    struct trainer trainer;  /* opened as far as this: storage, device, stream, graph, state */
};

enum trained_passes {
    TRAINED_TOKEN_BY_TOKEN, /* a layout alone, for a decoder; float32 */
    TRAINED_EXAMPLE_ALONE,  /* an evaluation as the job makes it, of one example */
    TRAINED_IN_BATCHES,     /* of as many at a time as the job's, within reason: it may have planned for more memory */
};

/* Weights of --weights, else of the job's export, else of its newest checkpoint; which, is told on stderr. On failure *ret_code
 * says how the process should end; the model must be released all the same. */
int trained_model_open(struct trained_model *model, const struct arguments *arguments, const struct identity *identity,
                       const struct job_document *job, enum trained_passes passes, enum exit_code *ret_code,
                       struct error *error);
void trained_model_release(struct trained_model *model);

#endif
