/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the evaluator of a ParameterServer job: a process beside the crew that computes the metrics
 * of each new checkpoint on the held-out examples. It reads the checkpoint directory and reports
 * its results as a chief does (log lines, status, TensorBoard). It takes no part in training: if it
 * is lost or slow, the other processes are unaffected. It skips checkpoints that were replaced
 * before it came to them, and tries one that it cannot read again later. It ends after it has
 * evaluated the checkpoint of the run's last step.
 */
#ifndef COXSWAIN_TRAIN_EVALUATOR_H
#define COXSWAIN_TRAIN_EVALUATOR_H

#include "worker/train/trainer.h"

/* Identifies a checkpoint by step and content, since the newest may be replaced by one of the same
 * step with more updates. */
struct evaluator_sight {
    int64_t step; /* -1: no checkpoint */
    uint32_t digest;
    bool over; /* the run ends with this checkpoint */
};
struct evaluator_memory {
    struct evaluator_sight scored; /* the checkpoint that was evaluated last */
    struct evaluator_sight bad;    /* a checkpoint that could not be read, which was reported */
    int64_t again_ns;              /* when to try to read `bad` again (CLOCK_MONOTONIC) */
    int64_t bucket_ns;             /* when to look for checkpoints in the bucket again, if the job has one */
};
#define EVALUATOR_MEMORY_INIT                                                                                          \
    {                                                                                                                  \
        .scored.step = -1, .bad.step = -1                                                                              \
    }
/* Evaluates the newest checkpoint, unless it was evaluated last. Returns 1 if it has evaluated one, 0 if there is no new
 * one, or it has vanished or cannot be read. */
int evaluator_look(struct trainer *trainer, struct evaluator_memory *memory, struct error *error);

int evaluator_run(struct trainer *trainer, struct error *error);

#endif
