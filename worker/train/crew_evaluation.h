/* SPDX-License-Identifier: Apache-2.0
 *
 * Evaluation shared out among the crew: the held-out examples are cut into fixed
 * blocks, dealt to the ranks in turn, and the blocks' sums are added in order, so
 * that the figures do not depend on the size of the crew.
 */
#ifndef COXSWAIN_TRAIN_CREW_EVALUATION_H
#define COXSWAIN_TRAIN_CREW_EVALUATION_H

#include "worker/train/evaluation.h"
#include "worker/train/trainer.h"

/* Every rank calls it at the same step. Errors as strategy_step's. */
int crew_evaluate(struct trainer *trainer, struct loss_sums *ret_sums, struct error *error);

#endif
