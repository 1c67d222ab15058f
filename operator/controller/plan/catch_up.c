/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "operator/controller/plan/first_crew.h"
#include "operator/controller/plan/policies.h"
#include "operator/controller/plan/replicas.h"

static void newest(const struct planning *planning, int64_t *ret_incarnation, int64_t *ret_attempt)
{
    const struct crew *crew = &planning->crew;
    *ret_incarnation =
        planning->old->incarnation > crew->newest_incarnation ? planning->old->incarnation : crew->newest_incarnation;
    *ret_attempt = planning->old->attempt > crew->newest_attempt ? planning->old->attempt : crew->newest_attempt;
}

/* It is unknown to which attempt the reported numbers belong. */
static void forget_completed(struct planning *planning)
{
    for (int role = 0; role < ROLE_COUNT; role++)
        planning->next->replicas[role].completed = NULL;
}

static void raise_counters(struct planning *planning)
{
    struct job_status *next = planning->next;
    int64_t incarnation, attempt;
    newest(planning, &incarnation, &attempt);
    if (planning->old->attempt == 0)
        planning_begin(planning);
    next->incarnation = incarnation;
    next->attempt = attempt;
    forget_completed(planning);
    planning->plan->write_status = true;
    planning_event(
        planning, true, "StatusBehind", "CatchUp",
        planning_format(planning,
                        "the status had incarnation %" PRId64 " and attempt %" PRId64 " while the pods have %" PRId64
                        " and %" PRId64
                        ": the status is older than the pods, and the operator continues from the pods' numbers",
                        planning->old->incarnation, planning->old->attempt, incarnation, attempt));
}

/* An operator was killed before it told of the crew that it had begun. If the cache is only old, the write is refused. */
static void tell_of_first_crew(struct planning *planning)
{
    first_crew_take_over(planning);
    replicas_update(planning);
    planning->next->observed_generation = planning->job->generation;
    planning->plan->write_status = true;
}

/* As a rule the cache is only old, and nothing may be done from it. A status that stays behind was set back by a person
 * or a restore: names and fencing tokens up to the newest pod's are used up. */
bool catch_up_plan(struct planning *planning)
{
    const struct plan_input *input = planning->input;
    if (!planning->crew.ahead)
        return false;
    if (first_crew_is_unrecorded(planning)) {
        tell_of_first_crew(planning);
        return true;
    }
    int64_t since_ms = input->memory.behind_since_ms == FIELD_UNSET ? input->now_ms : input->memory.behind_since_ms;
    int64_t due_ms = since_ms + input->options->catch_up_ms;
    planning->plan->behind = true;
    if (input->now_ms < due_ms)
        planning_requeue(planning, due_ms);
    else
        raise_counters(planning);
    return true;
}
