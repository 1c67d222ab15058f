/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the loss of the current parameters on the held-out examples, for the training loop. All
 * ranks of the crew share the work, and all get the same sums. In PeerToPeer, whose ranks need not be
 * at the same step, the chief evaluates alone.
 *
 * The examples are cut into blocks whose size depends only on the number of examples. The ranks
 * share the blocks, and the blocks' sums are added in the order of the blocks, so that the metrics
 * do not depend on the number of ranks.
 */
#ifndef COXSWAIN_TRAIN_CREW_EVALUATION_H
#define COXSWAIN_TRAIN_CREW_EVALUATION_H

#include "worker/train/evaluation.h"
#include "worker/train/trainer.h"

/* Evaluates the current parameters. Every rank must call it at the same step; in PeerToPeer only the
 * chief calls it. Fails as strategy_step does. */
int crew_evaluate(struct trainer *trainer, struct loss_sums *ret_sums, struct error *error);

#endif
