/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "operator/controller/plan/policies.h"

/* Time spent suspended, and without pods while no operator watched, does not count; while a job is suspended its clock stands still. Nor does it count where the machine's clock was set. */
bool deadline_plan(struct planning *planning)
{
    const struct job_status *old = planning->old;
    int64_t seconds = planning->job->run_policy.active_deadline_seconds;
    if (seconds == FIELD_UNSET || old->start_ms == FIELD_UNSET ||
        condition_is(old, CONDITION_SUSPENDED, CONDITION_TRUE))
        return false;
    int64_t idle_ms = old->suspended_ms + absence_ms(planning);
    int64_t due_ms = planning_time(planning, STATUS_TIME_START) + idle_ms + 1000 * seconds;
    if (planning->now_ms < due_ms) {
        planning_requeue(planning, due_ms);
        return false;
    }
    planning_finish(planning, CONDITION_FAILED, "DeadlineExceeded",
                    planning_format(planning,
                                    "the job was active for %" PRId64 " s, as long as activeDeadlineSeconds allows",
                                    seconds));
    return true;
}
