/* SPDX-License-Identifier: Apache-2.0
 *
 * What a ticket stands for, computed: the gradient of its share of a batch. Which
 * examples these are follows from where the run began alone, so that any worker
 * computes the same. While one share is computed and pushed the examples of the
 * next are read (ps_reader.h): of a ticket that is foreseen, or, where a step
 * waits for all, of the same share of the next batch, which the chief gives to
 * whoever had it, if it can (dispenser.h), once it has been so for a while.
 */
#ifndef COXSWAIN_TRAIN_PS_SHARE_H
#define COXSWAIN_TRAIN_PS_SHARE_H

#include "worker/parameter_server/placement_rows.h"
#include "worker/parameter_server/ticket_link.h"
#include "worker/train/trainer.h"

struct ps_share;

/* Borrows the trainer's devices, graphs and training data. */
int ps_share_new(struct trainer *trainer, struct ps_share **ret_share, struct error *error);
/* Before the first share, with the arrays of all: devices that do not see the host's memory have copies of them. */
struct ps_arrays;
int ps_share_stage(struct ps_share *share, const struct ps_arrays *arrays, struct error *error);
/* Before the arrays go; waits for what is being read. On false a volume that hangs keeps the training data in use (ps_reader.h): they
 * must stay. */
bool ps_share_free(struct ps_share *share);

/* A ticket that will be this worker's next, or the one behind that. From any thread. */
void ps_share_foresee(struct ps_share *share, const struct ticket_grant *grant);
/* Nobody needs the share that is computed, nor ever another: if it waits for its examples it fails with ERROR_CANCELLED, and so does
 * any that is begun later. For good: whoever is to go on makes a new one. From any thread. */
void ps_share_cancel(struct ps_share *share);
/* Reads nothing ahead any more; waits for what is being read, so long at most: whether nothing is. */
bool ps_share_rest(struct ps_share *share, int64_t ms);

/* By server: the rows of its tables that the share's tokens name. Only for a placement that has tables. */
int ps_share_rows(struct ps_share *share, const struct ticket_grant *grant, const struct placement *placement,
                  struct row_set *sets, struct error *error);

/* Where the values are, and where gradients are wanted: memory of the host. */
struct ps_arrays {
    float *values, *gradients;
};

/* Flat gradients of the mean loss of the share (`whole_batch`: its part of the mean of the whole batch). Waits for the devices. */
int ps_share_compute(struct ps_share *share, const struct ticket_grant *grant, bool whole_batch,
                     const struct ps_arrays *arrays, struct ticket_result *result, struct error *error);

/* Sum of squares of what was computed last. */
int ps_share_squares(struct ps_share *share, const float *gradients, double *ret_squares, struct error *error);

/* Of the update that the ticket makes. The trainer's plan goes on from where the run did, of which only the grant tells a worker. */
double ps_share_rate(struct trainer *trainer, const struct ticket_grant *grant);

/* Whether a ticket's share has no examples, as the last of a batch that has fewer than it has shares. */
bool ps_share_is_empty(const struct trainer *trainer, const struct ticket_grant *grant);
/* How many have none in so many steps from the beginning of the data. */
int64_t ps_share_count_empty(const struct trainer *trainer, int64_t per_step, int64_t steps);

/* Where the batch of `step` (from 0) begins. */
void ps_share_position(const struct trainer *trainer, const struct ticket_grant *base, int64_t step,
                       int64_t *ret_data_epoch, int64_t *ret_position);

#endif
