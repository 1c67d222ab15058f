/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets the conditions of a job's status that follow from its pods, at the end of a plan. Policies
 * set others before (condition_set). The one-word state that kubectl shows is the first condition
 * that is True (job_status_state).
 */
#ifndef COXSWAIN_CONTROLLER_CONDITIONS_H
#define COXSWAIN_CONTROLLER_CONDITIONS_H

#include "operator/controller/plan/planning.h"

/* Sets Running, Restarting and Scheduled from the crew, and the state. Called after all
 * policies. */
void conditions_update(struct planning *planning);

#endif
