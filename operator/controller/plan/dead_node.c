/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "operator/controller/plan/policies.h"

/* The pod is left of a job that is gone, and was asked to end by the garbage collector. A pod that was left on purpose has no
 * owner. */
static bool is_left(const struct planning *planning, const struct pod_view *pod)
{
    return *pod->owner_uid != '\0' && pod_view_is_of_another_job(pod, planning->job->uid);
}

/* A node's state is read again after this time. */
#define NODE_LOOK_MS 30000

/* NULL: it has to be read. */
static const struct node_look *newest_look(const struct planning *planning, const char *node)
{
    const struct plan_input *input = planning->input;
    for (size_t i = 0; i < input->memory.node_count; i++) {
        const struct node_look *look = &input->memory.nodes[i];
        bool is_new = look->at_ms <= planning->now_ms && planning->now_ms < look->at_ms + NODE_LOOK_MS;
        if (is_new && strcmp(look->name, node) == 0)
            return look;
    }
    return NULL;
}

static bool is_looked_at(const struct plan *plan, const char *node)
{
    for (size_t i = 0; i < plan->action_count; i++)
        if (plan->actions[i].type == ACTION_LOOK_AT_NODE && strcmp(plan->actions[i].pod->node, node) == 0)
            return true;
    return false;
}

/* Whether the node can no longer end the pod: a slow kubelet must be waited for, because a process that is removed from the API
 * while it lives on keeps its devices and its files. */
static bool node_is_dead(struct planning *planning, const struct pod_view *pod, int64_t unseen_due_ms)
{
    if (*pod->node == '\0')
        return true;
    const struct node_look *look = newest_look(planning, pod->node);
    if (look && (look->state == NODE_DEAD || (look->state == NODE_UNKNOWN && planning->now_ms >= unseen_due_ms)))
        return true;
    if (!look && !is_looked_at(planning->plan, pod->node))
        planning_act(planning, ACTION_LOOK_AT_NODE, pod);
    planning_requeue(planning, (look ? look->at_ms : planning->now_ms) + NODE_LOOK_MS);
    return false;
}

/* A late process of our own worker is fenced off: within its job by its incarnation, from a later job of the name by a checkpoint
 * directory that knows of both. That one is claimed by the later job only if the earlier pod has begun; a pod that begins on
 * its silent node after that would claim it for itself. */
static bool is_fenced(const struct planning *planning, const struct pod_view *pod)
{
    return pod_view_is_of(pod, planning->job->uid) ? planning->job->framework == FRAMEWORK_COXSWAIN : pod->fenced;
}

/* The pod was asked to end and has not. A grace period of 0 means that it was removed by force already: a finalizer keeps it. */
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
                                             " s after it was asked to: its node is considered dead",
                                             pod->name, (planning->now_ms - pod->deletion_ms) / 1000));
}

/* A forceDeleteAfterSeconds in the job counts, whatever the node's state; for pods that an earlier job has left, that of the job that has
 * its name now. Without it, only fenced pods are removed, because processes of other frameworks could write files as long as they live. */
static void consider(struct planning *planning, const struct pod_view *pod)
{
    const struct plan_options *options = planning->input->options;
    int64_t said_s = planning->job->run_policy.force_delete_after_seconds;
    int64_t ended_ms = pod->deletion_ms + pod->grace_ms;
    int64_t due_ms = ended_ms + (said_s != FIELD_UNSET ? 1000 * said_s : options->dead_node_ms);
    if (said_s == FIELD_UNSET && !is_fenced(planning, pod))
        return;
    if (planning->now_ms < due_ms)
        planning_requeue(planning, due_ms);
    else if (said_s != FIELD_UNSET || node_is_dead(planning, pod, ended_ms + options->unseen_node_ms))
        force_delete(planning, pod);
}

bool dead_node_plan(struct planning *planning)
{
    for (size_t i = 0; i < planning->input->pod_count; i++) {
        const struct pod_view *pod = planning->input->pods[i];
        bool is_jobs = pod_view_is_of(pod, planning->job->uid) || is_left(planning, pod);
        if (is_jobs && is_stuck(pod))
            consider(planning, pod);
    }
    return false;
}
