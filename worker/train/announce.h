/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan, before the first step: what is trained, on what, with which numbers
 * and how much memory. Only the chief says it.
 */
#ifndef COXSWAIN_TRAIN_ANNOUNCE_H
#define COXSWAIN_TRAIN_ANNOUNCE_H

#include "worker/train/trainer.h"

void announce_plan(const struct trainer *trainer);
/* A Pipeline's memory, where its stages are cut after that. */
void announce_cut(const struct trainer *trainer);

#endif
