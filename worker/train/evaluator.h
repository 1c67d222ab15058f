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

/* Which checkpoint was scored last: the newest may be replaced by one of the same step that holds more updates. */
struct evaluator_scored {
    int64_t step; /* -1: none */
    uint32_t digest;
};
/* Scores the newest checkpoint unless it is that one. 1: it did, 0: there was none, or it was gone. */
int evaluator_look(struct trainer *trainer, struct evaluator_scored *scored, struct error *error);

int evaluator_run(struct trainer *trainer, struct error *error);

#endif
