/* SPDX-License-Identifier: Apache-2.0
 *
 * Replicas that differ (PeerToPeer) are evaluated, saved and exported as their
 * mean. Of how many it is, the status and the manifest tell.
 */
#ifndef COXSWAIN_TRAIN_AVERAGING_H
#define COXSWAIN_TRAIN_AVERAGING_H

#include "common/json.h"
#include "worker/train/trainer.h"

/* As strategy_average_begin and strategy_average_end. */
int averaging_begin(struct trainer *trainer, struct error *error);
void averaging_end(struct trainer *trainer);
/* "replicas" of a manifest's model, as "2 of 3"; nothing where replicas are equal. */
void averaging_describe(const struct trainer *trainer, struct json *model);

#endif
