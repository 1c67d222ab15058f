/* SPDX-License-Identifier: Apache-2.0
 *
 * A trainer that is asked to leave (stop.h) does so at the next boundary
 * (train/loop.c). Here: that it is told of the wish, also where it waits for its
 * crew; and that a step, or an evaluation, which does not end within half of
 * the grace period (COXSWAIN_GRACE_SECONDS) is abandoned, the boundary before it
 * saved and the process ended with 143, so that nothing but that step is lost. The
 * wish is voted for as a step begins: one that comes in a step is heeded after the
 * next. The half is therefore for what two steps take; of a longer one the second
 * is abandoned.
 *
 * Likewise a wait for the rest of the crew where nothing of one's own is left to save, and an export: those end after that half without
 * any save, and with 143 too.
 *
 * Where several ranks hold the state between them, each saves its part of that
 * boundary: those that are asked, and those that see one of them go and find that
 * it has called for theirs (saving.h).
 */
#ifndef COXSWAIN_TRAIN_LEAVING_H
#define COXSWAIN_TRAIN_LEAVING_H

#include "worker/train/trainer.h"

/* Whether a step of this trainer can be abandoned, and something is won by it: what it holds is saved, or others hold it too. Parts of
 * a crew with parameter servers have loops of their own, and see to it there. */
bool leaving_can_abandon(const struct trainer *trainer);

int leaving_open(struct trainer *trainer, struct error *error);
/* From now on nobody is told of the wish, and nothing is abandoned; also for those loops, which open theirs themselves. */
void leaving_close(struct trainer *trainer);

/* Whether a crew that forms may be left: nothing that this process holds could be lost. `formed`: it was in one. */
bool leaving_can_leave_forming(const struct trainer *trainer, bool formed);

/* When the trainer has left, before it is released: gives the best weights that are on their way to the disk (best.h) an eighth of the
 * grace period, and ends the process without them if need be. */
void leaving_settle(struct trainer *trainer, const struct error *error);

/* Ends the process, which leaves in the midst of something: what did not end within "half" of the grace period, and what follows
 * from that. */
_Noreturn void leaving_end(const struct trainer *trainer, const char *unfinished, const char *share,
                           const char *follows);

#endif
