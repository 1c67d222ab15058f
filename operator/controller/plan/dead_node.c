/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "operator/controller/plan/planning.h"

/* Of a job that is gone: asked to end by the garbage collector, as a rule. Whoever was left on purpose has no owner. */
static bool is_left(const struct planning *planning, const struct pod_view *pod)
{
    return *pod->owner_uid != '\0' && pod_view_is_of_another_job(pod, planning->job->uid);
}

/* How long past its grace period it is waited for; FIELD_UNSET: for ever. A late process of ours is fenced off by its incarnation,
 * within its job in any case. From a later job of the name it is where a checkpoint directory knows of both, which the
 * later one claims above of, as long as the earlier one has begun; one that begins on its silent node after that would claim
 * it for itself, and one of another framework could always write. So somebody has to say that the node is gone: of what an
 * earlier job has left, the job that has its name now. */
static int64_t patience_ms(const struct planning *planning, const struct pod_view *pod)
{
    const struct training_job *job = planning->job;
    bool is_own = pod_view_is_of(pod, job->uid);
    if (!is_own && !is_left(planning, pod))
        return FIELD_UNSET;
    if (job->run_policy.force_delete_after_seconds != FIELD_UNSET)
        return 1000 * job->run_policy.force_delete_after_seconds;
    bool fenced = is_own ? job->framework == FRAMEWORK_COXSWAIN : pod->fenced;
    return fenced ? planning->input->options->dead_node_ms : FIELD_UNSET;
}

/* Asked to end, and nothing has answered. A grace period of 0 tells that this was done already: what keeps the pod then
 * is a finalizer. */
static bool is_stuck(const struct pod_view *pod)
{
    return pod_view_deleting(pod) && pod_view_alive(pod) && pod->grace_ms > 0;
}

static void force_delete(struct planning *planning, const struct pod_view *pod)
{
    planning_act(planning, ACTION_FORCE_DELETE_POD, pod);
    planning_event_of_newest(planning, "PodForceDeleted", "ForceDelete",
                             planning_format(planning,
                                             "pod %s did not end for %" PRId64
                                             " s after it was asked to: its node is taken for dead",
                                             pod->name, (planning->now_ms - pod->deletion_ms) / 1000));
}

bool dead_node_plan(struct planning *planning)
{
    for (size_t i = 0; i < planning->input->pod_count; i++) {
        const struct pod_view *pod = planning->input->pods[i];
        int64_t patience = is_stuck(pod) ? patience_ms(planning, pod) : FIELD_UNSET;
        if (patience == FIELD_UNSET)
            continue;
        int64_t due_ms = pod->deletion_ms + pod->grace_ms + patience;
        if (planning->now_ms < due_ms)
            planning_requeue(planning, due_ms);
        else
            force_delete(planning, pod);
    }
    return false;
}
