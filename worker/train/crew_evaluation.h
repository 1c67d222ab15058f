/* SPDX-License-Identifier: Apache-2.0
 *
 * Evaluates the model on the held-out examples with the whole crew. The examples are cut into fixed
 * blocks, which are distributed over the ranks; the blocks' sums are added in a fixed order, so
 * that the metrics do not depend on the size of the crew.
 */
#ifndef COXSWAIN_TRAIN_CREW_EVALUATION_H
#define COXSWAIN_TRAIN_CREW_EVALUATION_H

#include "worker/train/evaluation.h"
#include "worker/train/trainer.h"

/* Evaluates the present parameters. Every rank calls this at the same step. Fails as strategy_step
 * does. */
int crew_evaluate(struct trainer *trainer, struct loss_sums *ret_sums, struct error *error);

#endif
