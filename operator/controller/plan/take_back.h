/* SPDX-License-Identifier: Apache-2.0
 *
 * Corrects the counters of a job if a failure turns out to have been caused by a disruption. If a
 * peer dies, a user's own script often exits with code 1, and the operator may see that before it
 * sees that the peer's node is gone. The failure is counted at once (judge.c). If a disruption of
 * the same pods is seen within TAKE_BACK_MS, it caused the failure, which then no longer counts
 * against backoffLimit. The time of the failure is in the status, so that a restarted operator
 * still knows of it. Only scripts of other frameworks that exit with a code from 1 to 127 are
 * treated so.
 */
#ifndef COXSWAIN_CONTROLLER_TAKE_BACK_H
#define COXSWAIN_CONTROLLER_TAKE_BACK_H

#include "operator/controller/plan/ending.h"
#include "operator/controller/plan/planning.h"

#define TAKE_BACK_MS 60000

/* Notes in the next status the time and the attempt of an event that was counted as `kind`, if that is a failure of such a script;
 * otherwise does nothing. `cause` is the slot whose pod caused the event. */
void take_back_note(struct planning *planning, const struct slot *cause, enum ending_kind kind);

/* Returns whether a failure counted in the next status may still be corrected: its time has not
 * passed, and a pod of that crew has vanished, or still exists and may turn out to have been
 * disrupted. If so, requeues the job for the end of that time. */
bool take_back_may_follow(struct planning *planning);

#endif
