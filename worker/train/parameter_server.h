/* SPDX-License-Identifier: Apache-2.0
 *
 * ParameterServer, from the side of one process. Unlike other strategies its
 * processes do different things, so each part has a loop of its own:
 *
 *   worker     ps_worker.h: takes tickets, pulls, computes, pushes
 *   chief      ps_chief.h: leads the servers, tells, saves, evaluates
 *   ps         holds variables and does as it is told
 *   evaluator  evaluator.h: scores checkpoints beside the crew
 *
 * Where no chief is given, worker 0 is one besides.
 */
#ifndef COXSWAIN_TRAIN_PARAMETER_SERVER_H
#define COXSWAIN_TRAIN_PARAMETER_SERVER_H

#include "worker/train/trainer.h"

/* Runs this process's part to the end; as loop_run. */
int parameter_server_run(struct trainer *trainer, enum exit_code *ret_code, struct error *error);

#endif
