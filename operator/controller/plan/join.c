/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/join.h"

#include <inttypes.h>

#include "operator/controller/plan/conditions.h"

/* Another program's health check, once a second, is no flood. */
#define BLOCKED_PER_MINUTE 300

/* A figure that changes with each report would have the status written each time. */
static int64_t round_down(int64_t number)
{
    int64_t power = 1;
    while (power <= number / 10)
        power *= 10;
    return power;
}

void join_update(struct planning *planning)
{
    const struct strangers_input *strangers = &planning->input->strangers;
    bool was = condition_is(planning->old, CONDITION_JOIN_BLOCKED, CONDITION_TRUE);
    if (status_terminal(planning->next) || !strangers->reported)
        return;
    if (strangers->members_missing && strangers->per_minute >= BLOCKED_PER_MINUTE) {
        const char *message = planning_format(
            planning,
            "members are missing, and the chief refuses more than %" PRId64
            " connections a minute that do not prove that they belong to the job, most of them from %s (%s): let only "
            "the job's pods reach its ports, with a NetworkPolicy",
            round_down(strangers->per_minute), strangers->from, strangers->why);
        if (!was)
            planning_event(planning, true, "UnauthenticatedConnections", "Join", message);
        condition_set(planning, CONDITION_JOIN_BLOCKED, CONDITION_TRUE, "UnauthenticatedConnections", message);
    } else if (was) {
        condition_set(planning, CONDITION_JOIN_BLOCKED, CONDITION_FALSE, "Joined",
                      "no member is missing, or few connections are refused");
    }
}
