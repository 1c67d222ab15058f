/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/coordination/member_parts.h"

#include <stdio.h>
#include <string.h>

#define OTHER_JOB_REDIAL_MS 1000

/* ---------------------------------------------------------------- changes that the trainer sees; with the lock held */

static void end_world(struct member *member, enum error_kind kind, const char *why)
{
    member->in_force = false;
    member->world_ready = false;
    member->standing.planned = false;
    member->reported = false; /* a member that is agreeing reports again */
    snprintf(member->ended, sizeof(member->ended), "%s", why);
    if (member->group != NULL)
        collective_abort(member->group, kind, why);
}

static void fail_for_good(struct member *member, enum error_kind kind, const char *why)
{
    if (member->fatal.kind == ERROR_NONE)
        error_set(&member->fatal, kind, "%s", why);
    end_world(member, kind, why);
    pthread_cond_broadcast(&member->changed);
}

void member_not_understood(struct member *member, const char *why)
{
    pthread_mutex_lock(&member->lock);
    fail_for_good(member, ERROR_FORBIDDEN, why);
    pthread_mutex_unlock(&member->lock);
}

void member_lose_chief(struct member *member, const char *why)
{
    if (member->unled_since_ms == 0)
        member->unled_since_ms = clock_monotonic_ms();
    end_world(member, ERROR_UNAVAILABLE, why);
    snprintf(member->waiting, sizeof(member->waiting), "waiting for the chief, %s %u (%s:%u): %s",
             member->seats[0].role, member->seats[0].index, member->seats[0].host, member->seats[0].port, why);
    pthread_cond_broadcast(&member->changed);
}

/* Ranks of an elastic crew are not its seats. */
static void name_peers(const struct member *member, struct world *world)
{
    for (unsigned rank = 0; rank < world->size; rank++) {
        unsigned seat = world->members[rank];
        struct collective_peer *peer = &world->peers[rank];
        peer->name[0] = '\0';
        if (seat < member->options.size)
            snprintf(peer->name, sizeof(peer->name), "%s %u", member->seats[seat].role, member->seats[seat].index);
    }
}

static void take_world(struct member *member, const struct coordination_message *message)
{
    for (unsigned rank = 0; rank < message->seats; rank++)
        if (message->incarnations[rank] > member->incarnations[rank])
            member->incarnations[rank] = message->incarnations[rank];
    if (!(member->agreeing || member->options.loose) || message->rank >= message->size ||
        generation_compare(message->generation, member->known) < 0)
        return;
    struct world *world = &member->world;
    *world = (struct world){.generation = message->generation,
                            .rank = message->rank,
                            .size = message->size,
                            .logical_shards = message->logical_shards,
                            .source = (enum world_source)message->source,
                            .source_rank = message->source_rank,
                            .step = message->step};
    memcpy(world->arithmetic, message->arithmetic, sizeof(world->arithmetic));
    memcpy(world->peers, message->peers, sizeof(world->peers));
    for (unsigned rank = 0; rank < message->size; rank++)
        world->incarnations[rank] =
            message->members[rank] < message->seats ? message->incarnations[message->members[rank]] : 0;
    memcpy(world->members, message->members, sizeof(world->members));
    name_peers(member, world);
    memcpy(world->receives, message->receives, sizeof(world->receives));
    member->in_force = true;
    member->world_ready = true;
    pthread_cond_broadcast(&member->changed);
}

static void take_refusal(struct member *member, const struct coordination_message *message)
{
    if (message->refusal == REFUSE_OTHER_JOB) {
        member->next_dial_ms = clock_monotonic_ms() + OTHER_JOB_REDIAL_MS;
        member_lose_chief(member, message->text);
        return;
    }
    int threads = arithmetic_threads(message->arithmetic);
    if (message->refusal == REFUSE_ARITHMETIC && threads != arithmetic_threads(member->arithmetic))
        member->wanted_threads = threads;
    fail_for_good(member,
                  message->refusal == REFUSE_BAD_SEAT     ? ERROR_INVALID
                  : message->refusal == REFUSE_ARITHMETIC ? ERROR_DEVICE
                                                          : ERROR_STALE,
                  message->text);
}

/* Handles messages from the coordinator, which arrive by stream or, in the chief, directly. */
void member_told(void *context, const struct coordination_message *message)
{
    struct member *member = context;
    pthread_mutex_lock(&member->lock);
    if (message->type == COORDINATION_WORLD)
        take_world(member, message);
    else if (message->type == COORDINATION_REFORM)
        end_world(member, ERROR_UNAVAILABLE, message->text);
    else if (message->type == COORDINATION_WAITING)
        snprintf(member->waiting, sizeof(member->waiting), "%s", message->text);
    else if (message->type == COORDINATION_REFUSED)
        take_refusal(member, message);
    if (message->type != COORDINATION_REFUSED) {
        member->unled_since_ms = 0;
        if (generation_compare(message->generation, member->known) > 0)
            member->known = message->generation;
    }
    pthread_mutex_unlock(&member->lock);
}

void member_superseded(void *context, const char *text)
{
    struct member *member = context;
    pthread_mutex_lock(&member->lock);
    fail_for_good(member, ERROR_STALE, text);
    pthread_mutex_unlock(&member->lock);
}
