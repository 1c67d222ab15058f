/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/policies.h"

/* When the last of the crew's pods ended. A pod that never ran stands for the time before it was created. */
static int64_t last_end_ms(const struct crew *crew)
{
    int64_t last_ms = FIELD_UNSET;
    for (size_t i = 0; i < crew->slot_count; i++) {
        const struct pod_view *pod = crew->slots[i].occupant;
        int64_t end_ms = !pod ? FIELD_UNSET : pod->finished_ms != FIELD_UNSET ? pod->finished_ms : pod->created_ms;
        last_ms = end_ms > last_ms ? end_ms : last_ms;
    }
    return last_ms;
}

int64_t absence_ms(const struct planning *planning)
{
    int64_t since_ms = planning->input->options->watching_since_ms, last_ms = last_end_ms(&planning->crew);
    bool goes_on = planning->old->start_ms != FIELD_UNSET && !status_terminal(planning->old) &&
                   !condition_is(planning->old, CONDITION_SUSPENDED, CONDITION_TRUE);
    if (!goes_on || planning->crew.alive_count > 0 || crew_unfilled(&planning->crew) || last_ms == FIELD_UNSET)
        return 0;
    return since_ms > last_ms ? since_ms - last_ms : 0;
}

/* Once: the next plan finds successors promised, or the job over or suspended. */
void absence_update(struct planning *planning)
{
    bool is_suspended = condition_is(planning->next, CONDITION_SUSPENDED, CONDITION_TRUE);
    if (planning->next->incarnation != planning->old->incarnation || status_terminal(planning->next) || is_suspended)
        planning->next->suspended_ms += absence_ms(planning);
}
