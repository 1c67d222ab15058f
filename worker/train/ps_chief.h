/* SPDX-License-Identifier: Apache-2.0
 *
 * The chief of a parameter-server crew: it decides what the servers start from,
 * brings back those that are lost, tells about steps, has checkpoints written,
 * evaluates where there is no evaluator, and ends the run. Where no chief is
 * given, worker 0's own work runs on a thread beside it.
 */
#ifndef COXSWAIN_TRAIN_PS_CHIEF_H
#define COXSWAIN_TRAIN_PS_CHIEF_H

#include "common/contract/exit_code.h"
#include "worker/train/trainer.h"

/* *ret_code: how the process should end, when it fails. */
int ps_chief_run(struct trainer *trainer, enum exit_code *ret_code, struct error *error);

#endif
