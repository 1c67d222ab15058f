/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads the parameters and optimizer slots that a parameter server starts from, and writes that
 * server's file of a checkpoint. The server (parameter_server.c) calls these functions when the
 * chief tells it to start or to save. If the chief names no checkpoint, the server starts from the
 * spec field init.path, or else from fresh parameters. The argument `trainer` is a struct trainer.
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
