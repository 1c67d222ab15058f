/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one process of a ParameterServer job; main.c calls it in place of loop_run. The processes
 * have different tasks, and each task has a loop of its own:
 *
 *     worker     ps_worker.h: pulls the parameters, computes gradients of its share of a batch, pushes them
 *     chief      ps_chief.h: hands out the shares, leads the servers, reports, saves, evaluates
 *     ps         a server: holds a part of the parameters, updates it, writes it into checkpoints
 *     evaluator  evaluator.h: evaluates checkpoints beside the crew
 *
 * In a job without a pod of role chief, the process of worker 0 is both chief and worker.
 */
#ifndef COXSWAIN_TRAIN_PARAMETER_SERVER_H
#define COXSWAIN_TRAIN_PARAMETER_SERVER_H

#include "worker/train/trainer.h"

/* Runs this process's task to the end. Fails as loop_run does. */
int parameter_server_run(struct trainer *trainer, enum exit_code *ret_code, struct error *error);

#endif
