/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a trainer leave in time when it is asked to (stop.h). Normally it leaves at the next
 * boundary between two steps (train/loop.c). This file passes the request on, also while the
 * trainer waits for its crew, and abandons a step or an evaluation that does not end within half of
 * the grace period (COXSWAIN_GRACE_SECONDS): it saves the boundary before that step and ends the
 * process with exit code 143, so that only that step is lost. Ranks vote on leaving when a step
 * begins; a request that arrives during a step takes effect after the next one. Half of the grace
 * period must therefore suffice for two steps; if it does not, the second is abandoned.
 *
 * A wait for the rest of the crew in which this process has nothing left to save, and an export,
 * are abandoned after the same time. They end the process with exit code 143 and without a save.
 *
 * If several ranks hold the state between them, each saves its part of that boundary: those that
 * are asked to leave, and those that see such a rank go and find that it has called for their parts
 * (saving.h).
 */
#ifndef COXSWAIN_TRAIN_LEAVING_H
#define COXSWAIN_TRAIN_LEAVING_H

#include "worker/train/trainer.h"

/* Returns whether a step of this trainer can be abandoned: what it holds is saved, or other
 * processes hold it too. False for the members of a crew with parameter servers, which have their
 * own loops and abandon work there. */
bool leaving_can_abandon(const struct trainer *trainer);

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
