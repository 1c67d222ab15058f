/* SPDX-License-Identifier: Apache-2.0
 *
 * What earlier runs have left on this machine: volumes
 * of claims, and checkpoints in its directory.
 */
#ifndef COXSWAIN_CLI_EARLIER_FILES_H
#define COXSWAIN_CLI_EARLIER_FILES_H

#include <stdint.h>

#include "common/buffer.h"

/* The volumes in a state directory, as "default/digits, default/runs"; nothing when there are none. */
void earlier_volumes(const char *state, struct buffer *out);

/* The highest step of a checkpoint in the directory; -1: there is none. */
int64_t earlier_checkpoint(const char *checkpoints);

#endif
