/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/back_off.h"

#include "common/extremes.h"
#include "operator/controller/plan/restart_delay.h"

/* No wait is longer than the ceiling and its jitter, so a later time was set by another clock. */
static int64_t time_of(const struct planning *planning, enum status_time time)
{
    int64_t until_ms = planning_time(planning, time);
    int64_t longest_ms = RESTART_DELAY_CEILING_MS + RESTART_DELAY_CEILING_MS / 10;
    return until_ms != FIELD_UNSET && until_ms > planning->now_ms + longest_ms ? FIELD_UNSET : until_ms;
}

static bool tells_who_waits(const struct job_status *status)
{
    bool tells = false;
    for (int role = 0; role < ROLE_COUNT; role++)
        tells |= status->replicas[role].backing_off != NULL;
    return tells;
}

static bool waits_unnamed(const struct planning *planning, const struct slot *slot)
{
    return !tells_who_waits(planning->old) &&
           (slot->restarting || !condition_is(planning->old, CONDITION_RUNNING, CONDITION_TRUE));
}

int64_t back_off_until(const struct planning *planning, const struct slot *slot)
{
    if (slot->backs_off)
        return time_of(planning, status_time_of_back_off(slot->role));
    return waits_unnamed(planning, slot) ? time_of(planning, STATUS_TIME_BACKOFF) : FIELD_UNSET;
}

/* Returns until when the slot waits, also by a status that does not name it yet; FIELD_UNSET if it does not wait, or no longer. */
static int64_t waits_already(const struct planning *planning, const struct slot *slot)
{
    int64_t until_ms = slot->promised && !slot->occupant ? back_off_until(planning, slot) : FIELD_UNSET;
    return until_ms > planning->now_ms ? until_ms : FIELD_UNSET;
}

/* Starts the wait of one role's slots and returns its end; FIELD_UNSET: no slot waits. */
static int64_t begin(struct planning *planning, enum role role, slot_wanted *waits, int64_t delay_ms)
{
    struct crew *crew = &planning->crew;
    int64_t until_ms = FIELD_UNSET;
    for (size_t i = crew->first[role]; i < crew->first[role + 1]; i++) {
        struct slot *slot = &crew->slots[i];
        int64_t slot_ms = waits_already(planning, slot);
        if (waits(slot))
            slot_ms = delay_ms > 0 ? int64_max(slot_ms, planning->now_ms + delay_ms) : FIELD_UNSET;
        slot->backs_off = slot_ms != FIELD_UNSET;
        until_ms = int64_max(until_ms, slot_ms);
    }
    return until_ms;
}

void back_off_begin(struct planning *planning, slot_wanted *waits, int64_t delay_ms)
{
    struct job_status *next = planning->next;
    next->backoff_until_ms = FIELD_UNSET;
    for (int role = 0; role < ROLE_COUNT; role++) {
        int64_t until_ms = begin(planning, (enum role)role, waits, delay_ms);
        next->replicas[role].backoff_until_ms = until_ms;
        next->backoff_until_ms = int64_max(next->backoff_until_ms, until_ms);
    }
}

void back_off_update(struct planning *planning)
{
    struct job_status *next = planning->next;
    for (int role = 0; role < ROLE_COUNT; role++)
        if (!next->replicas[role].backing_off)
            next->replicas[role].backoff_until_ms = 0;
    if (tells_who_waits(planning->old) && !tells_who_waits(next) && next->backoff_until_ms > planning->now_ms)
        next->backoff_until_ms = FIELD_UNSET;
}
