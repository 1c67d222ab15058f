/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends a piece of the training state from one rank to another, followed by its CRC-32C, when a rank has joined or was
 * replaced (Pipeline, or a sharded optimizer). Both ranks must pass the same channel (transfer.h) and length, and the
 * bytes go through the crew's group. The receiver fails with ERROR_CORRUPT if the checksum does not match.
 */
#ifndef COXSWAIN_STRATEGY_STATE_TRANSFER_H
#define COXSWAIN_STRATEGY_STATE_TRANSFER_H

#include "worker/comm/transfer.h"

/* Sends `bytes` to `rank` and waits until they and their checksum have been sent. */
int state_transfer_give(struct collective *group, unsigned rank, unsigned channel, const void *bytes, size_t length,
                        struct error *error);
/* Receives `length` bytes from `rank`. Fails with ERROR_CORRUPT, naming `what`, if the checksum
 * does not match. */
int state_transfer_take(struct collective *group, unsigned rank, unsigned channel, void *bytes, size_t length,
                        const char *what, struct error *error);

#endif
