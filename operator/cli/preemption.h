/* SPDX-License-Identifier: Apache-2.0
 *
 * Kills one pod of a job with SIGKILL half-way, as the loss of its node would, and measures what that costs,
 * for `cox demo --preempt`. Works only with the embedded control plane (control_plane.h), where pods are
 * processes of this machine (their containerID is process://<PID>).
 */
#ifndef COXSWAIN_CLI_PREEMPTION_H
#define COXSWAIN_CLI_PREEMPTION_H

#include "operator/cli/job_view.h"

enum preemption_target {
    PREEMPT_NOBODY,
    PREEMPT_WORKER, /* the one with the highest index */
    PREEMPT_CHIEF,
};

struct preemption {
    enum preemption_target target;
    int64_t step; /* the last step before the kill; -1: not killed yet */
    int64_t time_ms;
    int64_t back_ms;  /* when the crew's next step was reported; 0: not yet */
    int64_t repeated; /* steps that were done twice; -1: unknown */
    char pod[VIEW_TEXT_MAX];
};

void preemption_init(struct preemption *preemption, enum preemption_target target);
/* Kills the pod when half of the steps are done, and later records the recovery. Call it after each change of the view. Adds a line to
 * view->events for both. */
void preemption_consider(struct preemption *preemption, struct job_view *view, int64_t now_ms);

#endif
