/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the notifications that the operator sends to the administrator's sink (notifier.h): CloudEvents
 * of the types dev.coxswain.trainingjob.succeeded, .failed and .restarting.
 *
 * The end of a job is sent at least once, even if the operator restarts: the write that ends the
 * job sets status.controllerState.noticeSince, and each plan of the job asks for the notification
 * until it was delivered or given up; then the field is removed. TTL waits for that. The id follows
 * from the job's UID, so a receiver recognises a repetition. A restart is sent once it is in the
 * status; if the operator ends before the sink has answered, it is lost.
 *
 * A notification has no text of a program: conditions may quote its log, which may hold secrets.
 */
#ifndef COXSWAIN_CONTROLLER_NOTICE_H
#define COXSWAIN_CONTROLLER_NOTICE_H

#include "operator/controller/plan/planning.h"

/* After this time the notification about a job's end is given up. */
#define NOTICE_END_MS 3600000
/* The same for a restart. */
#define NOTICE_RESTART_MS 300000

/* Returns whether the notification about the job's end waits to be delivered. */
bool notice_is_pending(const struct planning *planning);

/* Sets plan.end_notice and plan.restart_notice, and what the status remembers. Called whatever the policies decide. */
void notice_update(struct planning *planning);

#endif
