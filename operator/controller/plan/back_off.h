/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose successors wait, and until when (how long: restart_delay.h). A wait is that
 * of the slots whose pods ended, in the status of their role: those of another role
 * come and go without it, and so does whoever is promised for another reason. Slots
 * of one role that wait at a time do so until the last of their times.
 *
 * status.backoffUntil is the latest of all. Where a status has nothing else, for an
 * older operator has written it or an older definition has dropped the rest, it
 * holds for all that were lost, and for a crew that waits as a whole.
 */
#ifndef COXSWAIN_CONTROLLER_BACK_OFF_H
#define COXSWAIN_CONTROLLER_BACK_OFF_H

#include "operator/controller/plan/planning.h"

/* FIELD_UNSET: it has no wait. The time may have passed. */
int64_t back_off_until(const struct planning *planning, const struct slot *slot);

/* The successors of those slots wait so long; 0: not at all. */
void back_off_begin(struct planning *planning, slot_wanted *waits, int64_t delay_ms);

/* Who waits still, into the next status. */
void back_off_update(struct planning *planning);

#endif
