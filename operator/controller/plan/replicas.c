/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/replicas.h"

#include "operator/controller/plan/back_off.h"
#include "operator/controller/plan/index_set.h"

static void count_pods(struct planning *planning)
{
    for (size_t i = 0; i < planning->input->pod_count; i++) {
        const struct pod_view *pod = planning->input->pods[i];
        if (!pod->member || !pod_view_is_of(pod, planning->job->uid))
            continue;
        struct replica_status *replicas = &planning->next->replicas[pod->role];
        replicas->active += pod_view_alive(pod);
        replicas->succeeded += pod->phase == POD_SUCCEEDED;
        replicas->failed += pod->phase == POD_FAILED;
    }
}

static bool is_wanted(const struct slot *slot)
{
    return slot->wanted;
}

/* A slot that is to get a new pod has all its work to do again. */
static bool is_completed(const struct slot *slot)
{
    return slot->done && !slot->wanted;
}

static bool is_backing_off(const struct slot *slot)
{
    return slot->backs_off && slot->wanted;
}

static const char *print_indices(struct planning *planning, int role, bool (*counts)(const struct slot *slot))
{
    const struct crew *crew = &planning->crew;
    struct arena *arena = &planning->plan->arena;
    struct index_set indices = index_set_make(arena, (int64_t)(crew->first[role + 1] - crew->first[role]));
    for (size_t i = crew->first[role]; i < crew->first[role + 1]; i++)
        if (counts(&crew->slots[i]))
            index_set_add(&indices, crew->slots[i].index);
    return index_set_print(&indices, arena);
}

void replicas_update(struct planning *planning)
{
    size_t ready = 0;
    for (int role = 0; role < ROLE_COUNT; role++)
        planning->next->replicas[role] =
            (struct replica_status){.backoff_until_ms = planning->next->replicas[role].backoff_until_ms};
    count_pods(planning);
    for (size_t i = 0; i < planning->crew.slot_count; i++) {
        const struct slot *slot = &planning->crew.slots[i];
        planning->next->replicas[slot->role].ready += slot_ready(slot);
        ready += slot_ready(slot);
    }
    for (int role = 0; role < ROLE_COUNT; role++) {
        planning->next->replicas[role].pending = print_indices(planning, role, is_wanted);
        planning->next->replicas[role].completed = print_indices(planning, role, is_completed);
        if (status_terminal(planning->next))
            continue;
        planning->next->replicas[role].restarting = print_indices(planning, role, slot_restarting);
        planning->next->replicas[role].backing_off = print_indices(planning, role, is_backing_off);
    }
    back_off_update(planning);
    planning->next->ready_summary = planning_format(planning, "%zu/%zu", ready, planning->crew.slot_count);
}

bool replicas_promised(const struct job_status *status)
{
    bool promised = false;
    for (int role = 0; role < ROLE_COUNT; role++)
        promised |= status->replicas[role].pending != NULL;
    return promised;
}
