/* SPDX-License-Identifier: Apache-2.0
 *
 * The death of a peer often shows in a foreign process as exit code 1. Such a
 * failure is charged at once; when within TAKE_BACK_MS a disruption of the same
 * crew surfaces, it was that, and is counted as a disruption instead. The charge is
 * noted in the status, so that a restarted operator still knows of it.
 */
#ifndef COXSWAIN_CONTROLLER_TAKE_BACK_H
#define COXSWAIN_CONTROLLER_TAKE_BACK_H

#include "operator/controller/plan/ending.h"
#include "operator/controller/plan/planning.h"

#define TAKE_BACK_MS 60000

/* After an event was counted as `kind`; `cause` is the slot to blame. */
void take_back_note(struct planning *planning, const struct slot *cause, enum ending_kind kind);

/* A failure that the next status has counted may be taken back yet: its time is not over, and a pod of that crew has
 * vanished, or is left and may turn out to have been disrupted. Then the plan looks again when the time is over. */
bool take_back_may_follow(struct planning *planning);

#endif
