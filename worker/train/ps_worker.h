/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker of a parameter-server crew: it takes a ticket, pulls the values,
 * computes the gradient of the ticket's share, pushes it, and says that it is
 * done, until the chief says that there are no more tickets.
 */
#ifndef COXSWAIN_TRAIN_PS_WORKER_H
#define COXSWAIN_TRAIN_PS_WORKER_H

#include "worker/parameter_server/message.h"
#include "worker/train/trainer.h"

struct ps_worker;

int ps_worker_new(struct trainer *trainer, struct ps_worker **ret_worker, struct error *error);
/* Until the end of the run, or ERROR_CANCELLED after ps_worker_cancel. */
int ps_worker_work(struct ps_worker *worker, struct error *error);
/* From any thread. */
void ps_worker_cancel(void *worker);
void ps_worker_free(struct ps_worker *worker);

/* All of it, for a process that is nothing else. */
int ps_worker_run(struct trainer *trainer, struct error *error);

/* Whom it waits for, "" for nobody. From any thread. */
void ps_worker_describe(struct ps_worker *worker, char text[PS_TEXT_MAX]);

#endif
