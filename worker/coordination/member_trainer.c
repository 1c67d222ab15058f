/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/coordination/member_parts.h"

#include <string.h>

#include "common/condition.h"

#define LEAVE_MS 1000
#define CHIEF_LEAVE_MS 5000

static int64_t wait_until_told(struct member *member)
{
    condition_wait_ms(&member->changed, &member->lock, 1000);
    return member->unled_since_ms == 0 ? 0 : clock_monotonic_ms() - member->unled_since_ms;
}

static int tell_lost(const struct member *member, int64_t unled_ms, struct error *error)
{
    return error_set(
        error, ERROR_TIMEOUT,
        "the crew is lost: no connection to the chief for %lld s, %s; start the chief, then this process again",
        (long long)(unled_ms / 1000), member->waiting);
}

static int agree_locked(struct member *member, struct world *ret_world, struct error *error)
{
    int64_t unled_ms = 0;
    while (!member->world_ready) {
        if (member->fatal.kind != ERROR_NONE) {
            if (error != NULL)
                *error = member->fatal;
            return -1;
        }
        if (member->cancelled)
            return error_set(error, ERROR_CANCELLED, "asked to stop while %s",
                             member->waiting[0] != '\0' ? member->waiting : "the crew forms");
        if (unled_ms >= member->options.lost_ms)
            return tell_lost(member, unled_ms, error);
        unled_ms = wait_until_told(member);
    }
    member->world_ready = false;
    *ret_world = member->world;
    return 0;
}

int member_agree(struct member *member, const struct member_standing *standing, struct world *ret_world,
                 struct error *error)
{
    pthread_mutex_lock(&member->lock);
    member->standing = *standing;
    member->agreeing = true;
    member->reported = false;
    member->world_ready = false;
    member->in_force = false;
    if (member->unled_since_ms == 0 && member->known.counter == 0 && member->options.rank != 0)
        member->unled_since_ms = clock_monotonic_ms();
    rpc_wake(member->rpc);
    int status = agree_locked(member, ret_world, error);
    member->agreeing = false;
    pthread_mutex_unlock(&member->lock);
    return status;
}

int member_wanted_threads(struct member *member)
{
    pthread_mutex_lock(&member->lock);
    int threads = member->wanted_threads;
    pthread_mutex_unlock(&member->lock);
    return threads;
}

int member_poll_world(struct member *member, const struct member_standing *standing, struct world *ret_world,
                      struct error *error)
{
    int result = 0;
    pthread_mutex_lock(&member->lock);
    member->standing = *standing;
    member->stands = true;
    int64_t unled_ms = member->unled_since_ms == 0 ? 0 : clock_monotonic_ms() - member->unled_since_ms;
    if (member->fatal.kind != ERROR_NONE) {
        if (error != NULL)
            *error = member->fatal;
        result = -1;
    } else if (unled_ms >= member->options.lost_ms) {
        result = tell_lost(member, unled_ms, error);
    } else if (member->world_ready) {
        member->world_ready = false;
        *ret_world = member->world;
        result = 1;
    }
    pthread_mutex_unlock(&member->lock);
    return result;
}

void member_guard(struct member *member, struct collective *group)
{
    pthread_mutex_lock(&member->lock);
    member->group = group;
    if (group != NULL && member->fatal.kind != ERROR_NONE)
        collective_abort(group, member->fatal.kind, member->fatal.message);
    else if (group != NULL &&
             (!member->in_force || generation_compare(collective_generation(group), member->world.generation) != 0))
        collective_abort(group, ERROR_UNAVAILABLE, member->ended);
    pthread_mutex_unlock(&member->lock);
}

void member_set_step(struct member *member, int64_t step)
{
    pthread_mutex_lock(&member->lock);
    member->step = step;
    pthread_mutex_unlock(&member->lock);
}

bool member_has_newcomers(struct member *member)
{
    pthread_mutex_lock(&member->lock);
    bool newcomers = member->newcomers;
    pthread_mutex_unlock(&member->lock);
    return newcomers;
}

enum member_presence member_presence_of(struct member *member, const struct world *world, unsigned rank)
{
    unsigned seat = world->members[rank];
    pthread_mutex_lock(&member->lock);
    bool known = member->options.rank == 0 && generation_compare(member->seated_since, world->generation) >= 0;
    bool lost = known && (!member->seated[seat] || member->seated_incarnations[seat] != world->incarnations[rank]);
    bool ended = !member->in_force || generation_compare(member->world.generation, world->generation) != 0;
    pthread_mutex_unlock(&member->lock);
    return lost ? MEMBER_LOST : ended ? MEMBER_MOVED_ON : MEMBER_PRESENT;
}

void member_cancel(struct member *member)
{
    pthread_mutex_lock(&member->lock);
    member->cancelled = true;
    pthread_cond_broadcast(&member->changed);
    pthread_mutex_unlock(&member->lock);
}

void member_leave(struct member *member)
{
    int64_t until = clock_monotonic_ms() + (member->options.rank == 0 ? CHIEF_LEAVE_MS : LEAVE_MS);
    pthread_mutex_lock(&member->lock);
    member->leaving = true;
    member->left = false;
    rpc_wake(member->rpc);
    while (!member->left && member->fatal.kind == ERROR_NONE && clock_monotonic_ms() < until)
        (void)wait_until_told(member);
    pthread_mutex_unlock(&member->lock);
}

void member_describe(struct member *member, char text[MEMBER_TEXT_MAX])
{
    pthread_mutex_lock(&member->lock);
    memcpy(text, member->waiting, MEMBER_TEXT_MAX);
    pthread_mutex_unlock(&member->lock);
}
