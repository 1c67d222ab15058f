/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/crew.h"

#include <string.h>

#include "operator/controller/objects/crew_roles.h"
#include "operator/controller/plan/index_set.h"

const struct slot *crew_chief(const struct crew *crew, const struct training_job *job)
{
    enum role role = crew_chief_role(job);
    return crew->first[role] < crew->first[role + 1] ? &crew->slots[crew->first[role]] : NULL;
}

bool crew_unfilled(const struct crew *crew)
{
    for (size_t i = 0; i < crew->slot_count; i++)
        if (crew->slots[i].promised && !crew->slots[i].occupant)
            return true;
    return false;
}

bool slot_required(const struct slot *slot)
{
    return slot->role != ROLE_EVALUATOR;
}

bool slot_ready(const struct slot *slot)
{
    const struct pod_view *pod = slot->occupant;
    return pod && pod->ready && !pod_view_ended(pod) && !pod_view_deleting(pod);
}

bool slot_fulfilled(const struct slot *slot)
{
    return slot_ready(slot) || slot->done || (slot->occupant && pod_view_succeeded(slot->occupant));
}

bool slot_restarting(const struct slot *slot)
{
    return slot->restarting && (slot->wanted || !slot_fulfilled(slot));
}

bool slot_lost(const struct slot *slot)
{
    return !slot->occupant && !slot->promised && !slot->fresh && !slot->done;
}

/* Scaling up is acknowledged in status.workers, together with the promise of the new indices. */
static bool is_fresh(const struct training_job *job, enum role role, int64_t index)
{
    return role == ROLE_WORKER && job->elastic.enabled && index >= job->status.workers;
}

static void slots_make(struct crew *crew, const struct training_job *job, struct arena *arena)
{
    for (int role = 0; role < ROLE_COUNT; role++)
        crew->first[role + 1] = crew->first[role] + (size_t)job_role_count(job, (enum role)role);
    crew->slot_count = crew->first[ROLE_COUNT];
    crew->slots = arena_allocate(arena, crew->slot_count, sizeof *crew->slots);
    for (int role = 0; role < ROLE_COUNT; role++) {
        int64_t count = (int64_t)(crew->first[role + 1] - crew->first[role]);
        struct index_set promised = index_set_make(arena, count), completed = index_set_make(arena, count),
                         restarting = index_set_make(arena, count), backing_off = index_set_make(arena, count);
        index_set_parse(&promised, job->status.replicas[role].pending);
        index_set_parse(&completed, job->status.replicas[role].completed);
        index_set_parse(&restarting, job->status.replicas[role].restarting);
        index_set_parse(&backing_off, job->status.replicas[role].backing_off);
        for (int64_t i = 0; i < count; i++) {
            bool open = index_set_has(&promised, i), fresh = is_fresh(job, (enum role)role, i);
            crew->slots[crew->first[role] + (size_t)i] = (struct slot){.role = (enum role)role,
                                                                       .index = i,
                                                                       .promised = open,
                                                                       .wanted = open,
                                                                       .fresh = fresh,
                                                                       .done = index_set_has(&completed, i) && !fresh,
                                                                       .restarting = index_set_has(&restarting, i),
                                                                       .backs_off = index_set_has(&backing_off, i)};
        }
    }
}

struct slot *crew_slot_at(const struct crew *crew, enum role role, int64_t index)
{
    if (index >= (int64_t)(crew->first[role + 1] - crew->first[role]))
        return NULL;
    return &crew->slots[crew->first[role] + (size_t)index];
}

struct slot *crew_slot(const struct crew *crew, const struct pod_view *pod)
{
    return pod->member ? crew_slot_at(crew, pod->role, pod->index) : NULL;
}

static bool of_earlier_attempt(const struct training_job *job, const struct pod_view *pod)
{
    return pod->attempt < job->status.attempt && (!pod->member || pod->role != ROLE_EVALUATOR);
}

/* Returns whether the pod may occupy the slot: a promised slot can be occupied only by a pod of the
 * promised incarnation. */
static bool eligible(const struct training_job *job, const struct slot *slot, const struct pod_view *pod)
{
    if (of_earlier_attempt(job, pod))
        return false;
    return slot->promised ? pod->incarnation == job->status.incarnation : pod->current;
}

static bool is_newer(const struct pod_view *pod, const struct pod_view *than)
{
    if (!than || pod->incarnation != than->incarnation)
        return !than || pod->incarnation > than->incarnation;
    return strcmp(pod->uid, than->uid) > 0;
}

static void occupy(struct crew *crew, const struct training_job *job, const struct pod_view *pod)
{
    struct slot *slot = crew_slot(crew, pod);
    if (slot && eligible(job, slot, pod) && is_newer(pod, slot->occupant))
        slot->occupant = pod;
}

static void supersede(struct crew *crew, const struct training_job *job, const struct pod_view *pod)
{
    struct slot *slot = crew_slot(crew, pod);
    if (slot && slot->occupant == pod)
        return;
    crew->superseded[crew->superseded_count++] = pod;
    crew->earlier_count += of_earlier_attempt(job, pod) && pod_view_alive(pod);
    if (slot && pod->current)
        slot->blocked = true;
    if (slot && pod_view_alive(pod))
        slot->ending = pod;
    if (slot && !pod_view_alive(pod) && is_newer(pod, slot->finished))
        slot->finished = pod;
}

static void note_newest(struct crew *crew, const struct training_job *job, const struct pod_view *pod)
{
    if (!pod->member) /* not created by an operator, so its numbers do not count */
        return;
    if (pod->incarnation > crew->newest_incarnation)
        crew->newest_incarnation = pod->incarnation;
    if (pod->attempt > crew->newest_attempt)
        crew->newest_attempt = pod->attempt;
    crew->ahead |= pod->incarnation > job->status.incarnation || pod->attempt > job->status.attempt;
}

static void note_done(struct crew *crew)
{
    for (size_t i = 0; i < crew->slot_count; i++) {
        struct slot *slot = &crew->slots[i];
        slot->done |= slot->occupant && !slot->fresh && pod_view_finished(slot->occupant);
    }
}

/* Returns true if the job controls the pod; otherwise counts it as an orphan, a leftover or
 * foreign. */
static bool sort_out(struct crew *crew, const struct training_job *job, const struct pod_view *pod)
{
    if (pod_view_is_of(pod, job->uid))
        return true;
    if (pod_view_is_orphan_of(pod, job->uid)) {
        crew->orphans[crew->orphan_count++] = pod;
    } else if (pod_view_is_of_another_job(pod, job->uid)) {
        crew->leftover_count++;
    } else {
        crew->foreign = pod;
        crew->foreign_count++;
    }
    return false;
}

struct crew crew_assemble(const struct training_job *job, const struct pod_view *const *pods, size_t pod_count,
                          struct arena *arena)
{
    struct crew crew = {0};
    slots_make(&crew, job, arena);
    crew.superseded = arena_allocate(arena, pod_count, sizeof *crew.superseded);
    crew.orphans = arena_allocate(arena, pod_count, sizeof *crew.orphans);
    const struct pod_view **own = arena_allocate(arena, pod_count, sizeof *own);
    size_t own_count = 0;
    for (size_t i = 0; i < pod_count; i++)
        if (sort_out(&crew, job, pods[i]))
            own[own_count++] = pods[i];
    for (size_t i = 0; i < own_count; i++) {
        note_newest(&crew, job, own[i]);
        crew.alive_count += pod_view_alive(own[i]);
        occupy(&crew, job, own[i]);
    }
    for (size_t i = 0; i < own_count; i++)
        supersede(&crew, job, own[i]);
    note_done(&crew);
    return crew;
}
