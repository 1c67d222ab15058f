/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/policies.h"
#include "operator/controller/plan/queue_plan.h"

static void promise_nothing(struct planning *planning)
{
    for (size_t i = 0; i < planning->crew.slot_count; i++)
        planning->crew.slots[i].wanted = planning->crew.slots[i].restarting = false;
    planning->next->backoff_until_ms = FIELD_UNSET;
}

static void end_pods(struct planning *planning)
{
    for (size_t i = 0; i < planning->input->pod_count; i++) {
        const struct pod_view *pod = planning->input->pods[i];
        if (pod_view_is_of(pod, planning->job->uid) && pod_view_alive(pod))
            planning_delete_pod(planning, pod);
    }
}

/* Adds the suspended time. If the clock was set back unnoticed, adds nothing rather than a negative
 * time. */
static void count_suspended_time(struct planning *planning)
{
    const struct condition *condition = &planning->old->conditions[CONDITION_SUSPENDED];
    int64_t passed_ms = planning->now_ms - planning_time(planning, STATUS_TIME_SUSPENDED);
    if (condition->status == CONDITION_TRUE && passed_ms > 0)
        planning->next->suspended_ms += passed_ms;
}

static void say_suspending(struct planning *planning)
{
    count_suspended_time(planning);
    condition_set(planning, CONDITION_SUSPENDED, CONDITION_FALSE, SUSPENDING, "waiting until all pods are gone");
}

/* Pods are deleted only once the status says that this is on purpose; otherwise a restarted
 * operator would take it for a disruption. Suspended becomes True when the last pod is gone. A
 * create of an earlier operator may still be in flight then, so promises are withdrawn one status
 * write before, and a pod that appears after all sets Suspended back to False. */
static void suspend(struct planning *planning, const char *reason, const char *why)
{
    bool on_purpose = status_deletes_pods(planning->old);
    promise_nothing(planning);
    if (on_purpose) {
        end_pods(planning);
        gang_dismiss(planning);
    }
    if (planning->crew.alive_count > 0 || crew_unfilled(&planning->crew)) {
        say_suspending(planning);
        return;
    }
    planning->next->admitted_workers = FIELD_UNSET;
    condition_set(planning, CONDITION_SUSPENDED, CONDITION_TRUE, reason, why);
    if (!condition_is(planning->old, CONDITION_SUSPENDED, CONDITION_TRUE))
        planning_event(planning, false, reason, "Suspend",
                       planning_format(planning, "the job is suspended and has no pods: %s", why));
}

void suspend_elsewhere(struct planning *planning, const char *reason, const char *why)
{
    promise_nothing(planning);
    planning->next->observed_generation = planning->job->generation;
    condition_set(planning, CONDITION_SUSPENDED, CONDITION_TRUE, reason, why);
}

void suspend_take_back(struct planning *planning)
{
    if (condition_is(planning->next, CONDITION_SUSPENDED, CONDITION_TRUE) && !status_terminal(planning->next) &&
        planning->crew.alive_count > 0)
        say_suspending(planning);
}

static void resume(struct planning *planning)
{
    count_suspended_time(planning);
    condition_set(planning, CONDITION_SUSPENDED, CONDITION_FALSE, "Resumed",
                  planning->job->queue_name ? "the queue admits the job" : "spec.suspend is false");
    if (planning->old->attempt == 0)
        return;
    planning->next->attempt++;
    planning_promise(planning, NULL);
    planning_event(planning, false, "Resumed", "Resume", "the crew starts over from its last checkpoint");
}

bool suspend_plan(struct planning *planning)
{
    const char *reason, *why;
    bool pods_are_gone =
        condition_is(planning->old, CONDITION_SUSPENDED, CONDITION_TRUE) && planning->crew.alive_count == 0;
    if (planning->job->suspend) {
        suspend(planning, "Suspended", "spec.suspend is true");
        if (pods_are_gone)
            queue_dismiss(planning);
        return true;
    }
    queue_keep(planning, pods_are_gone);
    if (!queue_admits(planning, &reason, &why)) {
        if (create_ends_job(planning))
            return true;
        suspend(planning, reason, why);
        return true;
    }
    if (queue_take_admission(planning))
        return true;
    if (!status_deletes_pods(planning->old))
        return false;
    resume(planning);
    return planning->old->attempt > 0;
}
