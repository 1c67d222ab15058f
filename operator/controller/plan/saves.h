/* SPDX-License-Identifier: Apache-2.0
 *
 * CheckpointsFailing: the chief cannot save, and trains on. The condition comes
 * with the first save that fails and is False once one has succeeded; a chief that
 * has not tried yet changes nothing.
 */
#ifndef COXSWAIN_CONTROLLER_SAVES_H
#define COXSWAIN_CONTROLLER_SAVES_H

#include "operator/controller/plan/planning.h"

/* After the progress in the next status. */
void saves_update(struct planning *planning);

#endif
