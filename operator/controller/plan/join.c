/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/join.h"

#include <inttypes.h>

/* Another program's health check, once a second, is no flood. */
#define BLOCKED_PER_MINUTE 300

void join_update(struct planning *planning)
{
    const struct strangers_input *strangers = &planning->input->strangers;
    if (status_terminal(planning->next) || !strangers->reported)
        return;
    if (strangers->members_missing && strangers->per_minute >= BLOCKED_PER_MINUTE) {
        const char *message = planning_format(
            planning,
            "members are missing, and the chief refuses more than %" PRId64
            " connections a minute that do not prove that they belong to the job, most of them from %s (%s): let only "
            "the job's pods reach its ports, with a NetworkPolicy",
            condition_figure_scale(strangers->per_minute), strangers->from, strangers->why);
        condition_warn(planning, CONDITION_JOIN_BLOCKED, "UnauthenticatedConnections", "Join", message);
    } else if (condition_is(planning->old, CONDITION_JOIN_BLOCKED, CONDITION_TRUE)) {
        condition_set(planning, CONDITION_JOIN_BLOCKED, CONDITION_FALSE, "Joined",
                      "no member is missing, or few connections are refused");
    }
}
