/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/node_leave.h"

#include <string.h>

#include "common/contract/labels.h"
#include "operator/controller/plan/policies.h"
#include "operator/controller/plan/queue_plan.h"

/* A toleration of all taints does not count, because it does not name this one. */
static bool tolerates(const struct json *template, const char *taint)
{
    const struct json *tolerations = json_at(template, "spec.tolerations");
    for (const struct json *item = json_first(tolerations); item; item = json_next(item))
        if (strcmp(json_string_at(item, "key", ""), taint) == 0)
            return true;
    return false;
}

/* Karpenter waits until pods with this annotation have ended. */
static bool karpenter_waits(const struct json *template, const char *taint)
{
    const struct json *annotations = json_at(template, "metadata.annotations");
    const char *given = json_string(json_member(annotations, ANNOTATION_DO_NOT_DISRUPT), "");
    return strcmp(given, "true") == 0 && strncmp(taint, "karpenter.sh/", strlen("karpenter.sh/")) == 0;
}

static bool stays_to_the_end(const struct training_job *job, const char *taint)
{
    bool stays = false;
    for (int role = 0; role < ROLE_COUNT; role++)
        stays |= tolerates(job->roles[role].template, taint) || karpenter_waits(job->roles[role].template, taint);
    return stays;
}

const char *node_leave_reason(struct planning *planning, const struct node_trouble *trouble)
{
    const struct run_policy *policy = &planning->job->run_policy;
    if (*trouble->removal_taint && !stays_to_the_end(planning->job, trouble->removal_taint))
        return planning_format(planning, "its node %s is about to be removed (taint %s)", trouble->name,
                               trouble->removal_taint);
    for (unsigned i = 0; i < policy->avoided_condition_count && !queue_pins_nodes(planning); i++)
        if (node_trouble_has(trouble, policy->avoided_conditions[i]))
            return planning_format(planning, "its node %s has the condition %s", trouble->name,
                                   policy->avoided_conditions[i]);
    return NULL;
}

const char *node_leave_reason_at(struct planning *planning, const char *node)
{
    const struct plan_input *input = planning->input;
    for (size_t i = 0; i < input->trouble_count; i++)
        if (strcmp(input->troubles[i]->name, node) == 0)
            return node_leave_reason(planning, input->troubles[i]);
    return NULL;
}

/* Returns whether the pod's affinity excludes the node on which it is. That happens where the node's label that affinities refer to
 * is not its name, and would happen to the pod's successors again. */
static bool is_on_excluded_node(const struct pod_view *pod)
{
    size_t length = strlen(pod->node);
    for (const char *at = pod->avoided; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == length && strncmp(at, pod->node, length) == 0)
            return true;
    return false;
}

bool node_leave_plan(struct planning *planning)
{
    bool no_successors = planning->finishing == FINISHING_WAITS || planning->input->invalid;
    if (planning->input->trouble_count == 0 || status_terminal(planning->next) || no_successors)
        return false;
    for (size_t i = 0; i < planning->crew.slot_count; i++) {
        const struct pod_view *pod = planning->crew.slots[i].occupant;
        if (!pod || *pod->node == '\0' || pod_view_ended(pod) || pod_view_deleting(pod) || is_on_excluded_node(pod))
            continue;
        const char *reason = node_leave_reason_at(planning, pod->node);
        if (!reason)
            continue;
        planning_delete_pod(planning, pod);
        planning_event_of_newest(
            planning, "NodeLeft", "ReplacePod",
            planning_format(planning, "pod %s is ended, so that it can save and be replaced: %s", pod->name, reason));
    }
    return false;
}
