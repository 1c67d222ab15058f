/* SPDX-License-Identifier: Apache-2.0
 *
 * Averages the replicas of a strategy with unequal replicas (PeerToPeer) for the time of an evaluation, a save or an export. How many
 * replicas the mean contains is shown in the status and recorded in the manifest.
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
