/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the chief of a ParameterServer job. The chief decides from which checkpoint the servers
 * start, brings lost servers back, hands out shares of batches to the workers, reports steps, has
 * checkpoints written, evaluates if the job has no evaluator, and ends the run.
 *
 * If the job has no pod of role chief, worker 0's process runs the chief on its main thread and the
 * worker on a second thread.
 */
#ifndef COXSWAIN_TRAIN_PS_CHIEF_H
#define COXSWAIN_TRAIN_PS_CHIEF_H

#include "common/contract/exit_code.h"
#include "worker/train/trainer.h"

/* Runs until the end of the run. On failure *ret_code is the exit code for the process. */
int ps_chief_run(struct trainer *trainer, enum exit_code *ret_code, struct error *error);

#endif
