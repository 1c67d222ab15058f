/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes into the next status, at the end of a plan, how many pods each role has by state, and the
 * indices of those that are promised, completed, restarting or waiting before they are replaced.
 * The next plan reads these indices back into slots (crew.h).
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
