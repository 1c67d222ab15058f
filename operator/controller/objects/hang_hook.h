/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a pod of another framework say where its processes stand before it is ended, for jobs with progressDeadlineSeconds: a preStop
 * hook of the main container. The hook writes the stack of process 1 by py-spy, or by gdb, whichever the image has and is allowed to
 * use, else what /proc says of each thread, to the container's log. The end of the log becomes the termination message, which
 * plan/hang_report.h quotes if the crew hung. A process that is frozen, or whose script has not registered faulthandler, says nothing
 * by itself.
 *
 * The kubelet runs the hook before it sends SIGTERM, within the grace period, so the hook takes a few seconds at most.
 */
#ifndef COXSWAIN_CONTROLLER_HANG_HOOK_H
#define COXSWAIN_CONTROLLER_HANG_HOOK_H

#include "common/job/training_job.h"

/* Adds the hook to the container, which is to become the main one of the role's pods, unless the template has a preStop hook of its own,
 * or process 1 is not the container's. */
void hang_hook_add(struct json *container, const struct training_job *job, enum role role);

#endif
