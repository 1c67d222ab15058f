/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads the trained model of a job on the CPU, for --generate and --predict. It needs neither the
 * job's other workers nor a GPU. It only reads the job's files and does not disturb the job if it
 * is running.
 */
#ifndef COXSWAIN_INFERENCE_TRAINED_MODEL_H
#define COXSWAIN_INFERENCE_TRAINED_MODEL_H

#include "worker/train/trainer.h"

struct trained_model {
    struct job_document job; /* a copy of the given job, which shares its memory */
    struct trainer trainer;  /* only its storage, device, stream, graph and state are open */
};

enum trained_passes {
    TRAINED_TOKEN_BY_TOKEN, /* only a layout, for a decoder; float32 */
    TRAINED_EXAMPLE_ALONE,  /* computes the outputs of one example at a time, as the job evaluates, and keeps them */
    TRAINED_IN_BATCHES,     /* evaluates in the job's batches, or smaller ones to bound memory */
    TRAINED_BATCH_OUTPUTS,  /* the same batches, and keeps the outputs */
};

/* Loads the weights from --weights, else from the job's export, else from its newest checkpoint, or from the best weights beside it
 * (best.h) if the job keeps them and does not export its last ones, and reports which on stderr. On failure *ret_code is the process's exit code. The model must be
 * released even after a failure. */
int trained_model_open(struct trained_model *model, const struct arguments *arguments, const struct identity *identity,
                       const struct job_document *job, enum trained_passes passes, enum exit_code *ret_code,
                       struct error *error);
void trained_model_release(struct trained_model *model);

#endif
