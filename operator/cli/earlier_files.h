/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists what earlier runs with the embedded control plane (control_plane.h) have left in directories of this
 * machine. `cox run` prints the volumes before it deletes them, and the highest step of the checkpoints that
 * a new job finds. A directory that cannot be read counts as empty.
 */
#ifndef COXSWAIN_CLI_EARLIER_FILES_H
#define COXSWAIN_CLI_EARLIER_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buffer.h"

/* Appends the volumes in a state directory, as in "default/digits, default/runs". */
void earlier_volumes(const char *state, struct buffer *out);

/* Returns whether there are several of them, so that `--delete-volumes` would delete more than one, such as data beside checkpoints. */
bool earlier_volumes_are_several(const char *state);

/* Returns the highest step of the checkpoints in the directory; -1 if it has none. */
int64_t earlier_checkpoint(const char *checkpoints);

#endif
