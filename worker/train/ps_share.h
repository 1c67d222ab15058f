/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes gradients for a worker of a ParameterServer job. A share is a part of one batch; a
 * ticket is the number by which the chief hands out a share (ticket_scheduler.h). Which examples
 * belong to a ticket depends only on where the run began, so any worker can compute any ticket and
 * gets the same result.
 *
 * While one share is computed and pushed, the examples of the next are read (ps_reader.h). Usually
 * the chief has announced the ticket of that next share. In mode Synchronous there is another way:
 * a worker that has had the same share of the batch for a few steps in a row reads the same share of
 * the next batch, because the chief gives a worker the share that it had before if it can.
 */
#ifndef COXSWAIN_TRAIN_PS_SHARE_H
#define COXSWAIN_TRAIN_PS_SHARE_H

#include "worker/parameter_server/placement_rows.h"
#include "worker/parameter_server/ticket_link.h"
#include "worker/train/trainer.h"

struct ps_share;

/* Creates the state for computing shares. Borrows the trainer's devices, graphs and training data. */
int ps_share_new(struct trainer *trainer, struct ps_share **ret_share, struct error *error);
/* Creates device copies of `arrays` for devices that cannot access the host's memory. Call it
 * before the first share, with the arrays that all shares will use. */
struct ps_arrays;
int ps_share_stage(struct ps_share *share, const struct ps_arrays *arrays, struct error *error);
/* Waits for a read in progress, then frees. Call it before the arrays are freed. Returns false if a
 * volume hangs and keeps the training data in use (ps_reader.h): the data must then not be freed. */
bool ps_share_free(struct ps_share *share);

/* Announces one of this worker's next two tickets, so that its examples are read ahead. May be
 * called from any thread. */
void ps_share_foresee(struct ps_share *share, const struct ticket_grant *grant);
/* Makes ps_share_compute fail with ERROR_CANCELLED instead of waiting for examples, now and
 * forever; to continue, create a new ps_share. May be called from any thread. */
void ps_share_cancel(struct ps_share *share);
/* Stops reading ahead and waits at most `ms` for a read in progress. Returns whether no read is in
 * progress any more. */
bool ps_share_rest(struct ps_share *share, int64_t ms);

/* Collects in `sets`, by server, the rows of its tables that the share's tokens name. Call it only
 * if the placement has tables. */
int ps_share_rows(struct ps_share *share, const struct ticket_grant *grant, const struct placement *placement,
                  struct row_set *sets, struct error *error);

/* Host memory for the model's values and for the gradients. */
struct ps_arrays {
    float *values, *gradients;
};

/* Computes the gradients of the share's mean loss, in the layout's order, and waits for the
 * devices. `whole_batch`: computes the share's part of the whole batch's mean instead. Fills `result`,
 * except the servers' nonces; `squares` is not measured. */
int ps_share_compute(struct ps_share *share, const struct ticket_grant *grant, bool whole_batch,
                     const struct ps_arrays *arrays, struct ticket_result *result, struct error *error);

/* Computes the sum of squares of the gradients computed last. */
int ps_share_squares(struct ps_share *share, const float *gradients, double *ret_squares, struct error *error);

/* Returns the learning rate of the update that the ticket makes. Continues the trainer's step plan
 * from the place where the run began, which a worker learns only from the grant. */
double ps_share_rate(struct trainer *trainer, const struct ticket_grant *grant);

/* Returns whether a ticket's share has no examples, as happens if the last batch of a pass has
 * fewer examples than shares. */
bool ps_share_is_empty(const struct trainer *trainer, const struct ticket_grant *grant);
/* Returns how many tickets of the first `steps` steps from the beginning of the data have no
 * examples. */
int64_t ps_share_count_empty(const struct trainer *trainer, int64_t per_step, int64_t steps);

/* Finds where in the data the batch of `step` (from 0) begins. */
void ps_share_position(const struct trainer *trainer, const struct ticket_grant *base, int64_t step,
                       int64_t *ret_data_epoch, int64_t *ret_position);

#endif
