/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps track of which slots wait before their pods are replaced, and until when (restart_delay.h
 * computes how long). Only slots whose pods ended wait; they are noted in the status of their role.
 * Pods of other roles, and pods promised for other reasons, do not wait. If several slots of one
 * role wait at the same time, all wait until the latest of their times.
 *
 * status.backoffUntil is the latest of all these times. A status that was written by an older
 * operator, or from which an older CustomResourceDefinition has dropped the rest, contains only
 * this; it then applies to all pods that were lost, and to a crew that waits as a whole.
 */
#ifndef COXSWAIN_CONTROLLER_BACK_OFF_H
#define COXSWAIN_CONTROLLER_BACK_OFF_H

#include "operator/controller/plan/planning.h"

/* Returns until when the slot waits; the time may have passed. FIELD_UNSET: it does not wait. */
int64_t back_off_until(const struct planning *planning, const struct slot *slot);

/* Lets the slots that `waits` selects wait for `delay_ms`; 0: they do not wait. */
void back_off_begin(struct planning *planning, slot_wanted *waits, int64_t delay_ms);

/* Writes into the next status which slots still wait. */
void back_off_update(struct planning *planning);

#endif
