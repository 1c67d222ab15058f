/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds what earlier runs of `cox run` have left on this machine: the volumes in a state
 * directory, and checkpoints. `cox run` names them when it deletes volumes, or when a job goes on
 * from a checkpoint.
 */
#ifndef COXSWAIN_CLI_EARLIER_FILES_H
#define COXSWAIN_CLI_EARLIER_FILES_H

#include <stdint.h>

#include "common/buffer.h"

/* Appends the volumes in a state directory, as in "default/digits, default/runs". */
void earlier_volumes(const char *state, struct buffer *out);

/* Returns the highest step of the checkpoints in the directory; -1 if it has none. */
int64_t earlier_checkpoint(const char *checkpoints);

#endif
