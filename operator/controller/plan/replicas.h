/* SPDX-License-Identifier: Apache-2.0
 *
 * How many pods there really are, role by role, and what is still promised.
 */
#ifndef COXSWAIN_CONTROLLER_REPLICAS_H
#define COXSWAIN_CONTROLLER_REPLICAS_H

#include "operator/controller/plan/planning.h"

/* Active counts a pod, of whatever attempt, until it is gone or has ended as a whole. */
void replicas_update(struct planning *planning);

/* Pods are still to be created. */
bool replicas_promised(const struct job_status *status);

#endif
