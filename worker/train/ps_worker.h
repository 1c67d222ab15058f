/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a worker of strategy ParameterServer. The worker takes a ticket from the chief, which
 * stands for a share (a part of a batch). It pulls the parameters from the servers, computes the
 * gradient of the share's examples, pushes the gradient to the servers, and reports to the chief
 * that the ticket is done. It repeats this until the chief says that there are no more tickets.
 */
#ifndef COXSWAIN_TRAIN_PS_WORKER_H
#define COXSWAIN_TRAIN_PS_WORKER_H

#include "worker/parameter_server/message.h"
#include "worker/train/trainer.h"

struct ps_worker;

int ps_worker_new(struct trainer *trainer, struct ps_worker **ret_worker, struct error *error);
/* Works until the end of the run. ERROR_CANCELLED after ps_worker_cancel. */
int ps_worker_work(struct ps_worker *worker, struct error *error);
/* Makes ps_worker_work return. May be called from any thread. */
void ps_worker_cancel(void *worker);
void ps_worker_free(struct ps_worker *worker);

/* Creates, runs and frees a worker in a process that is nothing else. Also handles requests to
 * leave. */
int ps_worker_run(struct trainer *trainer, struct error *error);

/* Describes what the worker waits for; "" if it does not wait. May be called from any thread. */
void ps_worker_describe(struct ps_worker *worker, char text[PS_TEXT_MAX]);

#endif
