/* SPDX-License-Identifier: Apache-2.0
 *
 * The evaluator: a process beside the crew that scores each checkpoint on the
 * held-out examples as it appears, and tells the results like a chief does its
 * own (lines, status, TensorBoard). It takes no part in the training: that it is
 * lost, or slow, stops nobody. It ends once it has scored the run's last step.
 */
#ifndef COXSWAIN_TRAIN_EVALUATOR_H
#define COXSWAIN_TRAIN_EVALUATOR_H

#include "worker/train/trainer.h"

/* A checkpoint: the newest may be replaced by one of the same step that holds more updates. */
struct evaluator_sight {
    int64_t step; /* -1: none */
    uint32_t digest;
    bool over; /* the run is */
};
struct evaluator_memory {
    struct evaluator_sight scored; /* last */
    struct evaluator_sight bad;    /* it could not be read: a warning says so once, and it is tried again … */
    int64_t again_ns;              /* … from then on, on the clock that never jumps */
};
#define EVALUATOR_MEMORY_INIT                                                                                          \
    {                                                                                                                  \
        .scored.step = -1, .bad.step = -1                                                                              \
    }
/* Scores the newest checkpoint unless it is the last that was. 1: it did, 0: there was none, or it was gone, or bad. */
int evaluator_look(struct trainer *trainer, struct evaluator_memory *memory, struct error *error);

int evaluator_run(struct trainer *trainer, struct error *error);

#endif
