/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the chief's parameters and optimizer slots the mean of all workers' while the chief
 * evaluates, saves or exports. Only in strategy PeerToPeer do the workers' copies of the model
 * (replicas) differ; for other strategies these functions do nothing.
 *
 * Between averaging_begin and averaging_end the trainer's state is the mean; averaging_end restores
 * the chief's own values. The other workers' replicas are never changed. A replica that cannot be
 * reached is left out of the mean: the status document says how many are missing, and a
 * checkpoint's manifest says how many the mean contains.
 */
#ifndef COXSWAIN_TRAIN_AVERAGING_H
#define COXSWAIN_TRAIN_AVERAGING_H

#include "common/json.h"
#include "worker/train/trainer.h"

/* Wrap strategy_average_begin and strategy_average_end; averaging_begin also reports missing
 * replicas. */
int averaging_begin(struct trainer *trainer, struct error *error);
void averaging_end(struct trainer *trainer);
/* Sets "replicas" in the manifest's `model`, such as "2 of 3"; does nothing if all replicas are
 * equal. */
void averaging_describe(const struct trainer *trainer, struct json *model);

#endif
