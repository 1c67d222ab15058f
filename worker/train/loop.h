/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a worker's training from the first step to the last, for all strategies except
 * ParameterServer (parameter_server.h). main.c calls loop_run after the trainer was opened.
 *
 * The loop connects to the other workers, takes steps, evaluates, saves, exports, and leaves when
 * the process is asked to. When another worker is lost, the loop forms the crew again and
 * continues; any other error ends the run, and the exit code says why.
 *
 * With COXSWAIN_PAUSE_STEP the loop saves and waits at that step until the process is asked to leave.
 *
 * What all ranks do together (evaluations, saves, the pause, the end) depends only on the step number in the
 * state. After a loss, survivors and new workers hold the same step, and so do the same next.
 */
#ifndef COXSWAIN_TRAIN_LOOP_H
#define COXSWAIN_TRAIN_LOOP_H

#include "worker/train/trainer.h"

/* Runs until the end of the run. On failure *ret_code is the exit code for the process; leaving on
 * SIGTERM counts as a failure (EXIT_CODE_LEFT). */
int loop_run(struct trainer *trainer, enum exit_code *ret_code, struct error *error);

#endif
