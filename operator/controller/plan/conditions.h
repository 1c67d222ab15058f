/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets the conditions of a job's status (metav1.Condition). Policies call condition_set during a
 * plan; after all policies, plan_job calls conditions_update once for the conditions that follow
 * from the pods. The one-word state that kubectl shows is the first condition that is True
 * (job_status_state). A condition's lastTransitionTime changes only if its status does.
 */
#ifndef COXSWAIN_CONTROLLER_CONDITIONS_H
#define COXSWAIN_CONTROLLER_CONDITIONS_H

#include "operator/controller/plan/planning.h"

/* Returns whether Succeeded or Failed is True. */
bool status_terminal(const struct job_status *status);
bool condition_is(const struct job_status *status, enum condition_type type, enum condition_status wanted);

/* Sets a condition in the next status; its transition time changes only if its status does.
 * `reason` is static; `message` is static or lies in the plan's arena, and is truncated at
 * CONDITION_MESSAGE_MAX. */
void condition_set(struct planning *planning, enum condition_type type, enum condition_status status,
                   const char *reason, const char *message);

/* As condition_set, to True; a warning event with the same reason and message says so if it was not True before. */
void condition_warn(struct planning *planning, enum condition_type type, const char *reason, const char *action,
                    const char *message);

/* Returns the highest power of ten that is not above `number`, at least 1. Figures in messages are rounded by it, because the status
 * is written each time that its text changes. */
int64_t condition_figure_scale(int64_t number);

/* Sets Running, Restarting and Scheduled from the crew, and the state. Called after all
 * policies. */
void conditions_update(struct planning *planning);

#endif
