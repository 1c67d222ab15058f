/* SPDX-License-Identifier: Apache-2.0
 *
 * A piece of the training state from one rank to another, followed by its
 * CRC-32C. Both sides name the same channel and length.
 */
#ifndef COXSWAIN_STRATEGY_STATE_TRANSFER_H
#define COXSWAIN_STRATEGY_STATE_TRANSFER_H

#include "worker/comm/transfer.h"

/* Returns when the bytes are on their way. */
int state_transfer_give(struct collective *group, unsigned rank, unsigned channel, const void *bytes, size_t length,
                        struct error *error);
/* ERROR_CORRUPT names `what` when the sum does not match. */
int state_transfer_take(struct collective *group, unsigned rank, unsigned channel, void *bytes, size_t length,
                        const char *what, struct error *error);

#endif
