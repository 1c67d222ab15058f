/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets the job's condition CheckpointsFailing, at the end of a plan: the chief, the pod that leads
 * the job, reports that it cannot save checkpoints but continues training. The condition becomes
 * True with the first save that fails, and False once a save has succeeded. Until the chief has
 * tried to save, the condition does not change.
 */
#ifndef COXSWAIN_CONTROLLER_SAVES_H
#define COXSWAIN_CONTROLLER_SAVES_H

#include "operator/controller/plan/planning.h"

/* Updates the next status. Call it after the progress has been updated. */
void saves_update(struct planning *planning);

#endif
