/* SPDX-License-Identifier: Apache-2.0
 *
 * Explains a hang: when progressDeadlineSeconds has ended a crew (progress_deadline.h), an event reports where in its script each Python
 * process was, and which processes were not in the collective operation for which the others waited.
 *
 * A script that has registered faulthandler for SIGTERM prints its threads' stacks to its log when its pod is asked to end; before that, a
 * hook of the pod prints what it finds from outside (objects/hang_hook.h). The end of the log becomes the pod's termination message
 * (terminationMessagePolicy FallbackToLogsOnError), so the operator needs no right to read logs or to run programs in pods. The controller
 * keeps the messages of the crew's pods when they are deleted (plan.hung_attempt), in memory only: an operator that is restarted in between
 * reports nothing.
 */
#ifndef COXSWAIN_CONTROLLER_HANG_REPORT_H
#define COXSWAIN_CONTROLLER_HANG_REPORT_H

#include "operator/controller/plan/planning.h"

/* Adds the event once no pod of the crew is alive, and sets plan.hung_attempt and plan.reports_hang. Called whatever the policies
 * decide. */
void hang_report_update(struct planning *planning);

#endif
