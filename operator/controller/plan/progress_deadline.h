/* SPDX-License-Identifier: Apache-2.0
 *
 * Applies spec.runPolicy.progressDeadlineSeconds: a crew whose pods all run and that makes no new
 * step for so long starts over.
 *
 * status.controllerState.progressedAt says, by the operator's clock, since when the crew is without
 * a new step. It is set once all required pods run (so the time to the first step counts), set anew
 * with each step, epoch or metric that differs from the status, and removed as soon as a required
 * pod does not run: the clock stands still while pods are replaced, and while the job is suspended.
 *
 * A crew is never ended because the operator lacks information. The operator ends it only after a
 * report that was asked for after the deadline had passed and that shows no new step; so an operator
 * that was just started, or that cannot read the log, ends no crew. In the end of a log that the
 * operator reads, the last step may be missing because of many other lines: if the newest report has
 * no progress at all, the time counts from the first report that this operator got.
 */
#ifndef COXSWAIN_CONTROLLER_PROGRESS_DEADLINE_H
#define COXSWAIN_CONTROLLER_PROGRESS_DEADLINE_H

#include "operator/controller/plan/planning.h"

/* How long the operator waits for a report after the deadline, before the job's status says that there is none. */
#define PROGRESS_DEADLINE_BLIND_MS 60000

/* Updates progressedAt in the next status. Call it once the next progress is known. */
void progress_deadline_update(struct planning *planning);

/* Returns whether the deadline has passed and the operator cannot see whether there was a step. */
bool progress_deadline_is_blind(struct planning *planning);

#endif
