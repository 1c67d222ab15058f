/* SPDX-License-Identifier: Apache-2.0
 *
 * Kills a worker with SIGKILL half-way through a job, as a preempted node would,
 * and measures what that costs. Only for pods that run as processes of this
 * machine: their containerID is process://<PID>.
 */
#ifndef COXSWAIN_CLI_PREEMPTION_H
#define COXSWAIN_CLI_PREEMPTION_H

#include "operator/cli/job_view.h"

enum preemption_target {
    PREEMPT_NOBODY,
    PREEMPT_WORKER, /* the last one */
    PREEMPT_CHIEF,
};

struct preemption {
    enum preemption_target target;
    int64_t step; /* after which it was done; -1: not yet */
    int64_t time_ms;
    int64_t back_ms;  /* when the crew's next step was heard of; 0: not yet */
    int64_t repeated; /* steps that were made again; -1: unknown */
    char pod[VIEW_TEXT_MAX];
};

void preemption_init(struct preemption *preemption, enum preemption_target target);
/* To be called after each change of the view; says what it does in the view's events. */
void preemption_consider(struct preemption *preemption, struct job_view *view, int64_t now_ms);

#endif
