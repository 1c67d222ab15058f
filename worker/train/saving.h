/* SPDX-License-Identifier: Apache-2.0
 *
 * When the chief saves, and what it writes down with the tensors. Every rank calls
 * these: those that hold a part of the state beside the chief's write it.
 */
#ifndef COXSWAIN_TRAIN_SAVING_H
#define COXSWAIN_TRAIN_SAVING_H

#include "worker/train/trainer.h"

/* Whenever a crew has formed: writes the epoch record if this process is a chief that has not done so. ERROR_STALE: another chief took
 * over. Whom saves waited for before is forgotten. */
int saving_begin(struct trainer *trainer, struct error *error);

/* Where several ranks have to take part in a save: whether the chief asks for one at the next boundary, and whether another rank
 * could take part in one. Neither while its own older one is under way: so no rank waits for one that does not write. */
unsigned saving_votes(const struct trainer *trainer);

/* After a step: starts a save of it when one is due or agreed upon, and tells the report what became of earlier ones, and who has
 * held them up for half a minute. A save that fails is a warning. Only ERROR_STALE and ERROR_CONFLICT are returned: a chief that
 * lost its directory must end. */
int saving_consider(struct trainer *trainer, const struct strategy_result *result, struct error *error);

/* Saves the present step, or this rank's part of it, and waits until that is durable; does nothing when it is already. */
int saving_finish(struct trainer *trainer, struct error *error);

/* Where several ranks hold the state, and this one is about to give up the step under way: has the others save the present one too,
 * as soon as they see that it goes. */
void saving_call(struct trainer *trainer);
/* Whether one that was lost has called for a save of the present step. */
bool saving_is_called(const struct trainer *trainer);

/* A checkpoint_ask_rank; the context is the trainer. */
enum checkpoint_rank_fate saving_ask_rank(void *context, const struct checkpoint_part_key *key);
/* For checkpoint_options.name_rank. */
void saving_name_rank(void *context, unsigned rank, char name[CHECKPOINT_RANK_NAME_MAX]);
/* For checkpoint_options.report_late. */
void saving_report_late(void *context, const char *rank, int64_t step, int64_t waited_ms);

/* What the manifest says of model and optimizer; the caller frees. */
struct json *saving_describe_model(const struct trainer *trainer);
struct json *saving_describe_optimizer(const struct trainer *trainer);

/* Whether the newest checkpoint is this job's finished run, so that a chief that was lost at the very end has nothing to do. */
bool saving_is_complete(const struct trainer *trainer);

#endif
