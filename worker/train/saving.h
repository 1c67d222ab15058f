/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides when the training loop saves a checkpoint, and what its manifest (the JSON file that
 * describes it) says of model and optimizer.
 *
 * The chief calls saving_begin; every rank calls saving_consider after each step and saving_finish
 * at the end. The chief saves the whole state, unless the strategy divides the state among several
 * ranks: then each of those ranks writes its part, and the chief writes its own and commits the
 * checkpoint, which makes it valid. On a rank that has nothing to write, saving_consider and
 * saving_finish do nothing. The chief of parameter servers saves by itself (ps_saving.h) and
 * uses only saving_begin, saving_is_complete and the functions that describe model and optimizer.
 *
 * A save that fails during training is reported and training continues, unless another chief or
 * another job owns the directory (ERROR_STALE, ERROR_CONFLICT): then the chief ends.
 */
#ifndef COXSWAIN_TRAIN_SAVING_H
#define COXSWAIN_TRAIN_SAVING_H

#include "worker/train/trainer.h"

/* Returns the time from which a crew that has just formed counts everySeconds. It lies in the past if everySeconds is more than ten, so
 * that the crew's first save comes after ten seconds and a short run that is killed has a checkpoint. */
int64_t saving_begun_ns(const struct checkpoint_spec *spec);

/* Prepares for saves; call it whenever a crew has formed. Writes the incarnation record if this process
 * is a chief that has not done so. ERROR_STALE: another chief took over. Also forgets which rank
 * held up saves before. */
int saving_begin(struct trainer *trainer, struct error *error);

/* Returns this rank's vote on a save at the next boundary, if several ranks write. The chief asks
 * for a save when one is due; the other ranks agree to take part. Neither does while its own older
 * save is in progress, so that no rank waits for one that does not write. */
unsigned saving_votes(const struct trainer *trainer);

/* Starts a save after a step if one is due or agreed upon. Reports the results of earlier saves,
 * and a rank that has held up saves for half a minute. A failed save is a warning; only ERROR_STALE
 * and ERROR_CONFLICT are returned, since a chief that lost its directory must end. */
int saving_consider(struct trainer *trainer, const struct strategy_result *result, struct error *error);

/* Saves the present step, or this rank's part of it, and waits until it is durable. Does nothing if
 * it is durable already. */
int saving_finish(struct trainer *trainer, struct error *error);

/* Asks the other ranks to save their parts of the present step. Call it if several ranks hold the
 * state and this one is about to abandon the step in progress; the others look for the call when
 * they see that this rank goes. */
void saving_call(struct trainer *trainer);
/* Returns whether a lost rank has asked for a save of the present step. */
bool saving_is_called(const struct trainer *trainer);

/* Says whether a rank still takes part in the last save that was started. A checkpoint_ask_rank;
 * the context is the trainer. */
enum checkpoint_rank_fate saving_ask_rank(void *context, const struct checkpoint_part_key *key);
/* Names a rank of the last save. For checkpoint_options.name_rank. */
void saving_name_rank(void *context, unsigned rank, char name[CHECKPOINT_RANK_NAME_MAX]);
/* Reports a rank with a late part: in the status if the end of the run waits for it, else as a warning. For
 * checkpoint_options.report_late. */
void saving_report_late(void *context, const char *rank, int64_t step, int64_t waited_ms);

/* Return what the manifest says of model and optimizer. The caller frees it. */
struct json *saving_describe_model(const struct trainer *trainer);
struct json *saving_describe_optimizer(const struct trainer *trainer);

/* Returns whether this job has done everything: the newest checkpoint is its last one, and intact, and there is a record that it was
 * evaluated and exported since. A chief that replaces one lost at the very end then has nothing to do but to report `ret_status`, what
 * that one last reported. */
bool saving_is_complete(const struct trainer *trainer, struct status_document *ret_status);
struct exported;
/* Writes that record (completion_record.h) in the chief, before the others leave. `exported` NULL: the job has no export. A record
 * that cannot be written is only a warning: without it a successor evaluates and exports again. */
void saving_complete(const struct trainer *trainer, const struct exported *exported);

#endif
