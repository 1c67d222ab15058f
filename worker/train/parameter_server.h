/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one process of a ParameterServer crew. Unlike in other strategies, the processes have
 * different tasks, and each task has a loop of its own:
 *
 *     worker     ps_worker.h: takes tickets, pulls values, computes gradients, pushes them
 *     chief      ps_chief.h: leads the servers, reports, saves, evaluates
 *     ps         holds variables and follows the chief
 *     evaluator  evaluator.h: scores checkpoints beside the crew
 *
 * If the job has no chief of its own, worker 0 is chief as well.
 */
#ifndef COXSWAIN_TRAIN_PARAMETER_SERVER_H
#define COXSWAIN_TRAIN_PARAMETER_SERVER_H

#include "worker/train/trainer.h"

/* Runs this process's task to the end. Fails as loop_run does. */
int parameter_server_run(struct trainer *trainer, enum exit_code *ret_code, struct error *error);

#endif
