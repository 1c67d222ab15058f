/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets the condition CheckpointsFailing: the chief cannot save checkpoints but continues training.
 * It becomes True with the first save that fails, and False once a save has succeeded. Until the
 * chief has tried to save it does not change.
 */
#ifndef COXSWAIN_CONTROLLER_SAVES_H
#define COXSWAIN_CONTROLLER_SAVES_H

#include "operator/controller/plan/planning.h"

/* Updates the next status. Call it after the progress has been updated. */
void saves_update(struct planning *planning);

#endif
