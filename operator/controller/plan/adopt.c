/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "operator/controller/plan/first_crew.h"
#include "operator/controller/plan/policies.h"

/* Returns the API server's refusal to let the pod be adopted; NULL if none is known. */
static const struct refused_pod *refusal_of(const struct planning *planning, const struct pod_view *pod)
{
    const struct plan_input *input = planning->input;
    for (size_t i = 0; i < input->memory.refused_count; i++)
        if (strcmp(input->memory.refused[i].uid, pod->uid) == 0)
            return &input->memory.refused[i];
    return NULL;
}

static const char *reason_of(struct planning *planning, const struct pod_view *pod)
{
    const struct refused_pod *refusal = refusal_of(planning, pod);
    if (*pod->owner_uid)
        return "belongs to another owner";
    if (refusal)
        return planning_format(planning, "has no owner, and the API server refuses to make the job its owner (%s)",
                               refusal->words);
    return pod->adoptable ? "has no owner and has a newer incarnation or attempt than the job"
                          : "has no owner and does not match what the operator would create";
}

/* Made for this job. */
static bool may_adopt(const struct planning *planning, const struct pod_view *pod)
{
    return pod->adoptable && first_crew_or_recorded(pod, planning->old->incarnation, planning->old->attempt);
}

static void tell(struct planning *planning, const struct pod_view *pod, size_t count)
{
    const char *others = count > 1 ? planning_format(planning, " (and %zu more)", count - 1) : "";
    planning_event_of_action(
        planning, "PodNotOurs", "Adopt",
        planning_format(
            planning,
            "pod %s%s has the labels of this job but %s: it is ignored; remove its coxswain.dev labels, or delete it",
            pod->name, others, reason_of(planning, pod)));
}

/* Tries a refused adoption again, since it may be allowed by now. The job has gone on without the pod, so nothing waits for the answer. */
static void try_again(struct planning *planning, const struct pod_view *pod, const struct refused_pod *refusal)
{
    if (planning->now_ms < refusal->retry_ms)
        planning_requeue(planning, refusal->retry_ms);
    else
        planning_act(planning, ACTION_ADOPT_POD, pod);
}

/* Adopts orphans like Kubernetes' controllers, and before ends are judged, since a pod that has lost its owner reference is not gone.
 * Pods that the operator would have made differently are left alone and reported once. */
bool adopt_plan(struct planning *planning)
{
    const struct crew *crew = &planning->crew;
    const struct pod_view *left = crew->foreign;
    size_t left_count = crew->foreign_count;
    for (size_t i = 0; i < crew->orphan_count; i++) {
        const struct pod_view *pod = crew->orphans[i];
        const struct refused_pod *refusal = refusal_of(planning, pod);
        bool may = may_adopt(planning, pod);
        if (may && !refusal) {
            planning_act(planning, ACTION_ADOPT_POD, pod);
            continue;
        }
        if (may)
            try_again(planning, pod, refusal);
        left = pod;
        left_count++;
    }
    planning->plan->foreign = left_count;
    if (left_count > planning->input->memory.foreign_reported)
        tell(planning, left, left_count);
    return left_count < crew->foreign_count + crew->orphan_count;
}
