/* SPDX-License-Identifier: Apache-2.0
 *
 * When a crew's next certificate is made: two before its first pod, then one each
 * time the newest has been presented for a while, to be presented a period after
 * that one. The rest of a period is left for it to reach all pods.
 */
#include "operator/controller/objects/crew_certificate.h"
#include "operator/controller/plan/policies.h"

/* A certificate is settled after one SETTLED-th of a period, which allows for clocks that differ. By then all pods present the newest
 * one, and the other file can be replaced. */
#define SETTLED 8
/* After this many periods without a renewal, all mounted certificates may have expired, so both are made anew, to be presented at once. */
#define STALE_PERIODS 3
#define RETRY_MS 10000

/* Its time by the clock as it goes now. */
static struct certificate_generation newest(const struct planning *planning)
{
    const struct certificate_generation *known = &planning->input->memory.certificate;
    const struct job_status *status = planning->old;
    if (known->number != FIELD_UNSET && known->number > status->certificate_generation)
        return *known;
    return (struct certificate_generation){.number = status->certificate_generation,
                                           .from_ms = planning_time(planning, STATUS_TIME_CERTIFICATE)};
}

/* A generation that is in the status already keeps its recorded time. */
static void tell_newest(struct planning *planning, const struct certificate_generation *last)
{
    if (last->number == planning->old->certificate_generation)
        return;
    planning->next->certificate_generation = last->number;
    planning->next->certificate_from_ms = last->from_ms;
}

/* False: not yet. */
static bool next_after(struct planning *planning, const struct certificate_generation *last,
                       struct certificate_generation *ret_next)
{
    int64_t now_ms = planning->now_ms, period_ms = planning->input->options->certificate_period_ms;
    bool none = last->number == FIELD_UNSET, stale = !none && now_ms > last->from_ms + STALE_PERIODS * period_ms;
    *ret_next = (struct certificate_generation){none ? 0 : last->number + 1, now_ms, period_ms};
    if (none || stale)
        return true;
    ret_next->from_ms = last->from_ms + period_ms;
    return last->number == 0 || now_ms >= last->from_ms + period_ms / SETTLED;
}

static bool may_try(struct planning *planning)
{
    const struct obstacle *obstacle = &planning->input->memory.obstacle;
    return obstacle->kind == OBSTACLE_NONE || planning->now_ms >= obstacle->retry_ms;
}

/* No pod before its crew has both. */
bool certificate_plan(struct planning *planning)
{
    struct certificate_generation last = newest(planning), next;
    if (!crew_certificate_is_needed(planning->job))
        return false;
    tell_newest(planning, &last);
    bool due = next_after(planning, &last, &next);
    if (due && may_try(planning)) {
        planning->plan->certificate = next;
        planning_act(planning, ACTION_CREATE_CERTIFICATE, NULL);
        planning_requeue(planning, planning->now_ms + RETRY_MS);
    } else {
        int64_t period_ms = planning->input->options->certificate_period_ms;
        planning_requeue(planning,
                         due ? planning->input->memory.obstacle.retry_ms : last.from_ms + period_ms / SETTLED);
    }
    return last.number < 1;
}
