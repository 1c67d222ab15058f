/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/preemption.h"

#include <signal.h>
#include <string.h>

void preemption_init(struct preemption *preemption, enum preemption_target target)
{
    *preemption = (struct preemption){.target = target, .step = -1, .repeated = -1};
}

static const struct pod_line *victim_of(const struct preemption *preemption, const struct job_view *view)
{
    const struct pod_line *chief = job_view_pod(view, "chief", 0);
    if (preemption->target == PREEMPT_CHIEF)
        return chief ? chief : job_view_pod(view, "worker", 0);
    return job_view_pod(view, "worker", view->workers - 1);
}

static void strike(struct preemption *preemption, struct job_view *view, int64_t now_ms)
{
    const struct pod_line *victim = victim_of(preemption, view);
    if (!victim || victim->process <= 1 || victim->ended || kill((pid_t)victim->process, SIGKILL) < 0)
        return;
    preemption->step = view->step;
    preemption->time_ms = now_ms;
    snprintf(preemption->pod, sizeof preemption->pod, "%s", victim->name);
    buffer_format(&view->events, "*** SIGKILL to %s %lld (%s, process %lld) after step %lld ***\n", victim->role,
                  (long long)victim->index, victim->name, (long long)victim->process, (long long)view->step);
}

/* The chief says so at once, with the step that was made. */
static void notice_recovery(struct preemption *preemption, struct job_view *view)
{
    const struct pod_line *successor = victim_of(preemption, view);
    if (view->recovery.logged_ms < preemption->time_ms)
        return;
    preemption->back_ms = view->recovery.logged_ms;
    preemption->repeated = view->recovery.repeated;
    buffer_format(&view->events, "*** %s has taken its place: step %lld is done %.2f s after the kill ***\n",
                  successor && strcmp(successor->name, preemption->pod) != 0 ? successor->name : "its successor",
                  (long long)view->recovery.step, (double)(preemption->back_ms - preemption->time_ms) / 1000);
}

void preemption_consider(struct preemption *preemption, struct job_view *view, int64_t now_ms)
{
    bool half_way = view->total_steps > 0 && view->step >= view->total_steps / 2 && view->step < view->total_steps;
    if (preemption->target == PREEMPT_NOBODY)
        return;
    if (preemption->step >= 0 && preemption->back_ms == 0)
        notice_recovery(preemption, view);
    else if (preemption->step < 0 && half_way)
        strike(preemption, view, now_ms);
}
