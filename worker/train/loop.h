/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the training loop: forms the crew, steps, evaluates, saves, continues after a loss, stops on
 * request, finishes.
 *
 * Everything that the crew does together is decided by the state's step alone. After a loss,
 * survivors and newcomers hold the same step and therefore do the same next.
 */
#ifndef COXSWAIN_TRAIN_LOOP_H
#define COXSWAIN_TRAIN_LOOP_H

#include "worker/train/trainer.h"

/* Runs until the end of the run. On failure *ret_code is the exit code for the process; leaving on
 * SIGTERM counts as a failure (EXIT_CODE_LEFT). */
int loop_run(struct trainer *trainer, enum exit_code *ret_code, struct error *error);

#endif
