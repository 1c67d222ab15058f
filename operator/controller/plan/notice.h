/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the notifications that the operator sends to the administrator's sink (notifier.h): CloudEvents
 * of the types dev.coxswain.trainingjob.succeeded, .failed and .restarting.
 *
 * The end of a job is sent at least once, even if the operator restarts: the write that ends the
 * job sets status.controllerState.noticeSince, and each plan of the job asks for the notification
 * until it was delivered or given up; then the field is removed. The job is not deleted by its TTL
 * before that. The id follows from the job's UID, so a receiver recognises a repetition. A restart is
 * sent once it is in the status; if the operator ends before the sink has answered, it is lost.
 *
 * Messages of conditions are left out, because they may quote a program's log, which may hold secrets.
 */
#ifndef COXSWAIN_CONTROLLER_NOTICE_H
#define COXSWAIN_CONTROLLER_NOTICE_H

#include "operator/controller/plan/planning.h"

/* For so long the notifier tries to deliver the notification of a job's end. */
#define NOTICE_END_MS 3600000
/* For so long it tries to deliver the notification of a restart. */
#define NOTICE_RESTART_MS 300000

/* Returns whether a notification with this id is about the end of the job with this UID. */
bool notice_is_about_end(const char *id, const char *uid);

/* Returns whether the notification about the job's end waits to be delivered. */
bool notice_is_pending(const struct planning *planning);

/* Sets plan.end_notice, plan.restart_notice and the next status's notice_since_ms. Called whatever the policies decide. */
void notice_update(struct planning *planning);

#endif
