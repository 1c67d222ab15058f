/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps track of which slots wait before their pods are replaced, and until when (restart_delay.h
 * computes how long). A slot is the role and index of one pod (crew.h). judge.c begins a wait, and
 * create.c creates no pod for a slot that waits. Only slots whose pods have ended wait; the status
 * lists them under their role, so that a restarted operator continues to wait. Pods of other roles,
 * and pods that are created for another reason (because an elastic job grows, for example), do not
 * wait. If several slots of one role wait at the same time, all of them wait until the latest of
 * their times.
 *
 * status.backoffUntil is the latest time of all roles. If a status lists no waiting slots, because
 * an older operator wrote it or an older CustomResourceDefinition dropped the lists,
 * status.backoffUntil applies to every pod that was lost and, if the job is not Running, to every
 * pod of the job.
 */
#ifndef COXSWAIN_CONTROLLER_BACK_OFF_H
#define COXSWAIN_CONTROLLER_BACK_OFF_H

#include "operator/controller/plan/planning.h"

/* Returns until when the slot waits; the time may have passed. FIELD_UNSET: it does not wait. */
int64_t back_off_until(const struct planning *planning, const struct slot *slot);

/* Lets the slots that `waits` selects wait for `delay_ms`, or longer if they wait already; 0: they do not wait any more. Other slots go on
 * waiting as before. */
void back_off_begin(struct planning *planning, slot_wanted *waits, int64_t delay_ms);

/* Writes into the next status which slots still wait. */
void back_off_update(struct planning *planning);

#endif
