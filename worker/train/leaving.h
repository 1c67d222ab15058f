/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a trainer leave in time when its process is asked to (SIGTERM, stop.h). Normally the
 * training loop (loop.c) leaves by itself at the next boundary between two steps. This module wakes
 * a trainer that waits for the other workers, and sets the deadline: a step or an evaluation that
 * has not ended after half of the grace period (COXSWAIN_GRACE_SECONDS) is abandoned. The state of
 * the boundary before that step is saved, the process ends with exit code 143, and only that step
 * is lost.
 *
 * The ranks agree on leaving when a step begins, so a request that arrives during a step takes
 * effect after the next step. Half of the grace period must therefore suffice for two steps; if it
 * does not, the second step is abandoned.
 *
 * A wait for other workers in which this process has nothing left to save, and an export, are
 * abandoned after the same time. The process then ends with exit code 143 and without a save.
 *
 * If each rank holds only a part of the state, a checkpoint needs all parts of one boundary. A rank
 * that abandons a step therefore asks the other ranks to save theirs (saving_call); they do so when
 * they notice that it is gone.
 */
#ifndef COXSWAIN_TRAIN_LEAVING_H
#define COXSWAIN_TRAIN_LEAVING_H

#include "worker/train/trainer.h"

/* Returns whether a step of this trainer may be abandoned without losing more than that step, because its state
 * can be saved or other processes hold it too. False for the members of a crew with parameter servers, which have
 * their own loops and abandon work there. */
bool leaving_can_abandon(const struct trainer *trainer);

/* Starts to listen for requests to leave. */
int leaving_open(struct trainer *trainer, struct error *error);
/* Stops listening for requests to leave; nothing is abandoned from here on. The loops of crews with
 * parameter servers, which install a listener of their own, call it too. */
void leaving_close(struct trainer *trainer);

/* Returns whether this process may leave while the crew forms, because nothing that it holds could
 * be lost. `formed`: the process has been in a complete crew before. */
bool leaving_can_leave_forming(const struct trainer *trainer, bool formed);

/* Waits for up to an eighth of the grace period for best weights that are still being written
 * (best.h). If they are not on the disk by then, ends the process without them. Call it when the
 * trainer has left, before it is released. */
void leaving_settle(struct trainer *trainer, const struct error *error);

/* Reports why, then ends the process with exit code 143. `unfinished` names what was abandoned,
 * `share` the part of the grace period that it had ("half"), `follows` what happens next. */
_Noreturn void leaving_end(const struct trainer *trainer, const char *unfinished, const char *share,
                           const char *follows);

#endif
