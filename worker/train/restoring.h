/* SPDX-License-Identifier: Apache-2.0
 *
 * Restores the state from which training starts, if no running worker holds it: from the job's newest
 * complete checkpoint, else from what the spec field init.path names, else the fresh parameters stay.
 * init.path is a file with weights, or one checkpoint of another job, of which the whole state is taken:
 * parameters, optimizer slots, step and position in the data. The strategies call it while the crew
 * forms; the chief of parameter servers uses restoring_open_checkpoint and restoring_open_init alone.
 *
 * A damaged checkpoint is moved aside and an older one is taken. A checkpoint that does not fit the
 * model or the data is an error.
 */
#ifndef COXSWAIN_TRAIN_RESTORING_H
#define COXSWAIN_TRAIN_RESTORING_H

#include "worker/train/trainer.h"

/* Messages about a fork, a run that continues another job's checkpoint: the notice (arguments: step, path), and what to do if that
 * checkpoint does not fit. */
#define RESTORING_FORKS "goes on from step %lld of another job, the checkpoint %s"
#define RESTORING_FORK_ADVICE "a job can go on only from one of the same model and optimizer"
/* Says which first values the job's program has computed (argument: the seed). */
#define RESTORING_INITIALISES "starts from the program's initialise with training.seed %lld"

/* Returns whether the job's program computes the first values of a run that starts without a checkpoint. */
bool restoring_initialises(const struct trainer *trainer);
/* Fills the trainer's state. For strategy_calls.restore. */
int restoring_state(void *trainer, struct error *error);
/* Opens the newest whole checkpoint if the job has a store. If there is none, *ret_found is false;
 * that is an error if the job requires one. The caller releases the image if one is found. */
int restoring_open_checkpoint(struct trainer *trainer, bool *ret_found, struct checkpoint_image *ret_image,
                              struct error *error);
/* If init.path names a folder of checkpoints, makes the path of the newest one the trainer's init_path. ERROR_NOT_FOUND: there is none in
 * it. */
int restoring_find_init(struct trainer *trainer, struct error *error);
/* Opens the checkpoint that init.path names, after restoring_find_init. *ret_found is false if it names none. The other job's directory
 * is only read: a checkpoint that is damaged, or does not fit the data, is an error. The caller releases the image if one is found. */
int restoring_open_init(struct trainer *trainer, bool *ret_found, struct checkpoint_image *ret_image,
                        struct error *error);
/* Fills the part of the state that this rank holds. The rank that `chooses` selects the checkpoint
 * and stores its name, or "", in `base`; the others read the one that `base` names. For
 * strategy_calls.restore_part. */
int restoring_part(void *trainer, bool chooses, char base[STRATEGY_BASE_MAX], struct error *error);

#endif
