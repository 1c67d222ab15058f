/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/notice.h"
#include "operator/controller/plan/policies.h"

bool ttl_plan(struct planning *planning)
{
    int64_t seconds = planning->job->run_policy.ttl_seconds_after_finished;
    bool is_copy = planning->job->queue_workload != NULL; /* MultiKueue deletes it, once it has read its status */
    if (!status_terminal(planning->old) || is_copy || seconds == FIELD_UNSET ||
        planning->old->completion_ms == FIELD_UNSET)
        return false;
    int64_t due_ms = planning_time(planning, STATUS_TIME_COMPLETION) + 1000 * seconds;
    planning_requeue(planning, due_ms > planning->now_ms ? due_ms : PLAN_NEVER);
    if (due_ms > planning->now_ms || notice_is_pending(planning))
        return false;
    planning_act(planning, ACTION_DELETE_JOB, NULL);
    return true;
}
