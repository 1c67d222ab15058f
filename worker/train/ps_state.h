/* SPDX-License-Identifier: Apache-2.0
 *
 * A parameter server's variables and the disk: what it starts from, and its shard
 * of a checkpoint. The context is the trainer.
 */
#ifndef COXSWAIN_TRAIN_PS_STATE_H
#define COXSWAIN_TRAIN_PS_STATE_H

#include "worker/parameter_server/variables.h"
#include "worker/train/trainer.h"

/* ps_server_options.load and .store. */
int ps_state_load(void *trainer, const char *checkpoint, struct variables *variables, struct error *error);
int ps_state_store(void *trainer, const char *directory, const struct variables *copy, char ret_name[64],
                   int64_t *ret_bytes, uint32_t *ret_crc, struct error *error);

#endif
