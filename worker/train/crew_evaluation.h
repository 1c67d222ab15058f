/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the loss of the current parameters on the held-out examples with all ranks of the crew,
 * for the training loop. Every rank calls crew_evaluate at the same step, and every rank gets the
 * same sums. In PeerToPeer the chief alone evaluates.
 *
 * The examples are cut into blocks whose size depends only on the number of examples. The ranks
 * share the blocks, and the blocks' sums are added in the order of the blocks, so that the metrics
 * do not depend on the number of ranks.
 */
#ifndef COXSWAIN_TRAIN_CREW_EVALUATION_H
#define COXSWAIN_TRAIN_CREW_EVALUATION_H

#include "worker/train/evaluation.h"
#include "worker/train/trainer.h"

/* Evaluates the present parameters. Every rank calls this at the same step. Fails as strategy_step
 * does. */
int crew_evaluate(struct trainer *trainer, struct loss_sums *ret_sums, struct error *error);

#endif
