/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints the plan before the first step: model, data, crew, number of steps, and memory. Only the
 * chief prints it.
 */
#ifndef COXSWAIN_TRAIN_ANNOUNCE_H
#define COXSWAIN_TRAIN_ANNOUNCE_H

#include "worker/train/trainer.h"

void announce_plan(const struct trainer *trainer);
/* Prints the memory plan of a Pipeline whose stages were cut after announce_plan. */
void announce_cut(const struct trainer *trainer);

#endif
