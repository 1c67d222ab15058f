/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the chief of a parameter-server crew. It decides what the servers start from, brings lost
 * servers back, reports steps, has checkpoints written, evaluates if there is no evaluator, and
 * ends the run. If the job has no chief of its own, worker 0 runs the chief, and its worker runs on
 * a second thread.
 */
#ifndef COXSWAIN_TRAIN_PS_CHIEF_H
#define COXSWAIN_TRAIN_PS_CHIEF_H

#include "common/contract/exit_code.h"
#include "worker/train/trainer.h"

/* Runs until the end of the run. On failure *ret_code is the exit code for the process. */
int ps_chief_run(struct trainer *trainer, enum exit_code *ret_code, struct error *error);

#endif
