/* SPDX-License-Identifier: Apache-2.0
 *
 * Saves a checkpoint of a ParameterServer job, for the chief (ps_chief.h): has each server write its shard, then commits
 * the checkpoint with a manifest that names the shards and, in asynchronous modes, the tickets that each server has
 * applied.
 */
#ifndef COXSWAIN_TRAIN_PS_SAVING_H
#define COXSWAIN_TRAIN_PS_SAVING_H

#include "worker/parameter_server/dispatcher.h"
#include "worker/parameter_server/ticket_link.h"
#include "worker/train/trainer.h"

/* Saves now and waits for it. `base`: where in the data the run began. ERROR_UNAVAILABLE: a server was lost. In
 * asynchronous modes the checkpoint also contains what servers have applied beyond the step, and replaces the newest
 * checkpoint if that has the same step. `last`: this process or the servers leave after the save; after it, servers
 * answer nobody, the chief included, until they are started again. Call it on the chief's main thread. */
int ps_saving_save(struct trainer *trainer, struct dispatcher *dispatcher, const struct ticket_grant *base, bool last,
                   struct error *error);
/* Returns a number that changes whenever a disk has made progress with the save. For dispatcher_options.written; the
 * context is the trainer. */
int64_t ps_saving_progress(void *trainer, const char *directory);

#endif
