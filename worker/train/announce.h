/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints what a run is going to do, on the chief's stdout: model, data, number of workers,
 * strategy, steps and planned memory. main.c calls announce_plan once, after the trainer was opened
 * and before the first step. In processes other than the chief (rank 0) the functions print
 * nothing.
 */
#ifndef COXSWAIN_TRAIN_ANNOUNCE_H
#define COXSWAIN_TRAIN_ANNOUNCE_H

#include "worker/train/trainer.h"

void announce_plan(const struct trainer *trainer);
/* Prints the memory plan of a Pipeline whose stages were cut after announce_plan. */
void announce_cut(const struct trainer *trainer);

#endif
