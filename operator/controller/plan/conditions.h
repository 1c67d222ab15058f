/* SPDX-License-Identifier: Apache-2.0
 *
 * The six conditions of a job, and the one word that sums them up.
 */
#ifndef COXSWAIN_CONTROLLER_CONDITIONS_H
#define COXSWAIN_CONTROLLER_CONDITIONS_H

#include "operator/controller/plan/planning.h"

/* Succeeded or Failed is True. */
bool status_terminal(const struct job_status *status);
bool condition_is(const struct job_status *status, enum condition_type type, enum condition_status wanted);

/* In the next status; the transition time changes only with the status. `reason` is static, `message` in the plan's arena
 * or static; it is cut at CONDITION_MESSAGE_MAX. */
void condition_set(struct planning *planning, enum condition_type type, enum condition_status status,
                   const char *reason, const char *message);

/* Running, Restarting and Scheduled as the crew shows, and the state, once all policies have spoken. */
void conditions_update(struct planning *planning);

#endif
