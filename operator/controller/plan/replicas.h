/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes into the next status how many pods each role has, and which are still promised.
 */
#ifndef COXSWAIN_CONTROLLER_REPLICAS_H
#define COXSWAIN_CONTROLLER_REPLICAS_H

#include "operator/controller/plan/planning.h"

/* Updates the next status. A pod of any attempt counts as active until it is gone, Succeeded or
 * Failed. */
void replicas_update(struct planning *planning);

/* Returns whether the status promises pods that are still to be created. */
bool replicas_promised(const struct job_status *status);

#endif
