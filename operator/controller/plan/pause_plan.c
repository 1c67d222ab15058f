/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/contract/environment.h"
#include "operator/controller/plan/policies.h"

/* A crew that waits at a rung (ENV_PAUSE_STEP) although its job no longer says so: its sweep was deleted without its trials, or somebody
 * removed the annotation. Nobody would ever decide, so the crew starts over from the checkpoint that it has just saved, and does not wait. */
bool pause_plan(struct planning *planning)
{
    const char *told = planning->input->crew_message;
    const char *what = "no sweep decides any more about this job, which had paused: it continues from its checkpoint";
    const struct slot *chief = crew_chief(&planning->crew, planning->job);
    bool is_of_this_attempt = chief && chief->occupant && chief->occupant->attempt == planning->old->attempt;
    if (planning->job->pause_step != FIELD_UNSET || !is_of_this_attempt || !told ||
        strncmp(told, PAUSE_MESSAGE, strlen(PAUSE_MESSAGE)) != 0)
        return false;
    planning->next->attempt++;
    planning_promise_successors(planning, NULL);
    condition_set(planning, CONDITION_RESTARTING, CONDITION_TRUE, "PauseOver", what);
    planning_event(planning, false, "PauseOver", "RestartCrew", what);
    return true;
}
