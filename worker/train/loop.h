/* SPDX-License-Identifier: Apache-2.0
 *
 * The training loop: form the crew, step, evaluate, save, carry on after a loss,
 * stop on request, finish.
 *
 * Everything that the crew does together is decided by the state's step alone,
 * so that after a loss survivors and newcomers, which then hold the same step, do
 * the same next.
 */
#ifndef COXSWAIN_TRAIN_LOOP_H
#define COXSWAIN_TRAIN_LOOP_H

#include "worker/train/trainer.h"

/* Runs to the end. On failure *ret_code says how the process should end (EXIT_CODE_LEFT after a SIGTERM is one of them). */
int loop_run(struct trainer *trainer, enum exit_code *ret_code, struct error *error);

#endif
