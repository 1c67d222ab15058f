/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/policies.h"

/* A crew that is restarted again and again must not fill the cluster with what is left of it. */
static bool is_kept(const struct crew *crew, const struct pod_view *pod)
{
    const struct slot *slot = crew_slot(crew, pod);
    return slot && slot->finished == pod;
}

/* Living ones of an earlier attempt block their successors till they are gone. */
static bool blocks(const struct training_job *job, const struct pod_view *pod)
{
    return pod_view_alive(pod) && pod->attempt < job->status.attempt && pod->role != ROLE_EVALUATOR;
}

/* Reports a copy of a pod that a user has made, with its owner reference. It must not take part, since its behaviour is unknown, and is
 * about to be deleted. */
static void tell_of_copy(struct planning *planning, const struct pod_view *pod)
{
    if (pod->member || pod_view_deleting(pod))
        return;
    planning_event_of_newest(
        planning, "PodUnknown", "ReplacePod",
        planning_format(planning,
                        "pod %s has an owner reference to the job, but the operator did not create it: it is deleted",
                        pod->name));
}

/* Handles pods whose end was judged or whose attempt is over. They lose the label `current`, so that the Service no longer publishes them
 * and their successors can be created; those that still live are ended. Of the finished pods of each index, the newest is kept for its
 * log. */
bool replace_plan(struct planning *planning)
{
    for (size_t i = 0; i < planning->crew.superseded_count; i++) {
        const struct pod_view *pod = planning->crew.superseded[i];
        bool goes = pod_view_alive(pod) || !is_kept(&planning->crew, pod);
        if (goes) {
            planning_delete_pod(planning, pod);
            tell_of_copy(planning, pod);
        }
        if (pod->current && (pod_view_alive(pod) || !goes) && !blocks(planning->job, pod))
            planning_act(planning, ACTION_REMOVE_CURRENT, pod);
    }
    return false;
}
