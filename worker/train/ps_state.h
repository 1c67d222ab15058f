/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads what a parameter server starts from, and writes its shard of a checkpoint. `trainer` is the
 * struct trainer.
 */
#ifndef COXSWAIN_TRAIN_PS_STATE_H
#define COXSWAIN_TRAIN_PS_STATE_H

#include "worker/parameter_server/variables.h"
#include "worker/train/trainer.h"

/* Implement ps_server_options.load and .store. */
int ps_state_load(void *trainer, const char *checkpoint, struct variables *variables, struct error *error);
int ps_state_store(void *trainer, const char *directory, const struct variables *copy, char ret_name[64],
                   int64_t *ret_bytes, uint32_t *ret_crc, struct error *error);

#endif
