/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/planning.h"

/* Pods whose end was judged, or whose attempt is over. They lose the label `current`, so that the Service stops to
 * publish them and their successors may come, and what still lives is ended. A finished one stays for its log. */
bool replace_plan(struct planning *planning)
{
    const struct training_job *job = planning->job;
    for (size_t i = 0; i < planning->crew.superseded_count; i++) {
        const struct pod_view *pod = planning->crew.superseded[i];
        bool alive = pod_view_alive(pod);
        bool earlier = pod->attempt < job->status.attempt;
        if (alive)
            planning_delete_pod(planning, pod);
        if (pod->current &&
            !(alive && earlier && pod->role != ROLE_EVALUATOR)) /* those block their successors till gone */
            planning_act(planning, ACTION_REMOVE_CURRENT, pod);
    }
    return false;
}
