/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides how long the pods of a job wait before they are replaced, after an event has been counted
 * in the next status (limit.h): restart_delay.h computes the delays, and a job that has worked for
 * long before the event begins with the first one again.
 */
#ifndef COXSWAIN_CONTROLLER_RESTART_WAIT_H
#define COXSWAIN_CONTROLLER_RESTART_WAIT_H

#include "operator/controller/plan/planning.h"

/* Returns the delay in milliseconds. `worked_ms`: how long things went well before the event; if at
 * least RESTART_DELAY_RECOVERED_MS, the next status gets new recovered_restarts and
 * recovered_failures. `failed`: the event was counted as a failure or as out of memory. */
int64_t restart_wait_ms(struct planning *planning, int64_t worked_ms, bool failed);

#endif
