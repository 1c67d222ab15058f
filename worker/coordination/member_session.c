/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/coordination/member_parts.h"

#include <stdio.h>
#include <string.h>

#include "common/memory.h"

#define REDIAL_MS 100

/* ---------------------------------------------------------------- speaking to the coordinator */

static void member_say(struct member *member, const struct coordination_message *message)
{
    if (member->chief != NULL) {
        chief_hear(member->chief, message);
        return;
    }
    SCOPED_BUFFER bytes;
    buffer_init(&bytes, COORDINATION_MESSAGE_MAX);
    if (member->session != NULL && coordination_message_encode(message, &bytes, NULL) == 0)
        rpc_stream_send(member->session->stream, bytes.data, bytes.length);
}

void member_say_join(struct member *member)
{
    struct coordination_message message = {
        .type = COORDINATION_JOIN,
        .generation = {.attempt = member->options.attempt, .incarnation = member->options.incarnation},
        .nonce = member->nonce,
        .rank = member->options.rank,
        .size = member->options.size,
        .peer = member->data};
    snprintf(message.job_uid, sizeof(message.job_uid), "%s", member->job_uid);
    memcpy(message.arithmetic, member->arithmetic, sizeof(message.arithmetic));
    member_say(member, &message);
}

void member_say_standing_if_due(struct member *member)
{
    struct coordination_message message = {.type = COORDINATION_STANDING};
    pthread_mutex_lock(&member->lock);
    bool due = (member->agreeing || member->stands) && !member->reported;
    member->reported |= due;
    message.holds_state = member->standing.holds_state;
    message.step = member->standing.applied_step;
    message.generation = member->known;
    message.planned = member->standing.planned;
    message.seats = member->options.size;
    memcpy(message.incarnations, member->incarnations, sizeof(message.incarnations));
    memcpy(message.arithmetic, member->world.arithmetic, sizeof(message.arithmetic));
    pthread_mutex_unlock(&member->lock);
    if (due)
        member_say(member, &message);
}

void member_say_beat_if_due(struct member *member, int64_t now)
{
    if (now < member->next_beat_ms)
        return;
    member->next_beat_ms = now + member->options.beat_ms;
    struct coordination_message message = {.type = COORDINATION_BEAT};
    pthread_mutex_lock(&member->lock);
    message.step = member->step;
    message.generation = member->known;
    pthread_mutex_unlock(&member->lock);
    member_say(member, &message);
}

void member_say_leave_if_asked(struct member *member)
{
    pthread_mutex_lock(&member->lock);
    bool leaving = member->leaving && !member->left;
    if (leaving && member->session == NULL) {
        member->left = true;
        pthread_cond_broadcast(&member->changed);
        leaving = false;
    }
    member->leaving = false;
    pthread_mutex_unlock(&member->lock);
    if (leaving)
        member_say(member, &(struct coordination_message){.type = COORDINATION_LEAVE});
}

/* ---------------------------------------------------------------- sessions with the chief, of other members */

void member_drop_session(struct member *member, const char *why)
{
    struct session *session = member->session;
    member->session = NULL;
    rpc_stream_close(session->stream);
    pthread_mutex_lock(&member->lock);
    member_lose_chief(member, why);
    pthread_mutex_unlock(&member->lock);
}

static bool is_superseded(struct member *member, struct generation generation)
{
    pthread_mutex_lock(&member->lock);
    bool superseded = generation_compare_chiefs(generation, member->known) < 0;
    pthread_mutex_unlock(&member->lock);
    return superseded;
}

/* This member's beats tell the superseded chief, whose end closes the session. Until then, or until the newer chief calls, this member
 * has no chief. */
static void session_distrust(struct session *session, struct generation generation)
{
    char why[COORDINATION_TEXT_MAX];
    if (session->superseded)
        return;
    session->superseded = true;
    snprintf(why, sizeof(why), "that of attempt %u, incarnation %u is superseded", generation.attempt,
             generation.incarnation);
    pthread_mutex_lock(&session->member->lock);
    member_lose_chief(session->member, why);
    pthread_mutex_unlock(&session->member->lock);
}

/* From another job only a refusal is accepted, and its generation is ignored. */
static bool session_heeds(struct session *session, const struct coordination_message *message)
{
    if (strcmp(message->job_uid, session->member->job_uid) != 0)
        return message->type == COORDINATION_REFUSED;
    if (!is_superseded(session->member, message->generation))
        return true;
    session_distrust(session, message->generation);
    return false;
}

static void session_message(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    (void)stream;
    struct session *session = context;
    struct coordination_message message;
    if (session->member->session != session)
        return;
    struct error error = ERROR_INIT;
    if (coordination_message_decode(bytes, length, &message, &error) < 0) {
        if (error.kind == ERROR_UNSUPPORTED)
            member_not_understood(session->member, error.message);
        member_drop_session(session->member,
                            "the chief does not speak our language; do all pods run the same version?");
        return;
    }
    if (!session_heeds(session, &message))
        return;
    session->heard_ms = clock_monotonic_ms();
    session->heard = true;
    member_told(session->member, &message);
    member_say_standing_if_due(session->member);
}

static void session_closed(void *context, struct rpc_stream *stream, const struct error *error)
{
    (void)stream;
    struct session *session = context;
    struct member *member = session->member;
    if (member->session == session) {
        member->session = NULL;
        if (!session->heard)
            member->called_from.port = 0;
        int64_t soonest = clock_monotonic_ms() + REDIAL_MS;
        if (member->next_dial_ms < soonest)
            member->next_dial_ms = soonest;
        pthread_mutex_lock(&member->lock);
        member->left = true;
        member_lose_chief(member, error != NULL ? error->message : "its end of the connection was closed");
        pthread_mutex_unlock(&member->lock);
    }
    free(session);
}

static void session_open(struct member *member, const struct collective_peer *chief)
{
    static const struct rpc_stream_events events = {.message = session_message, .closed = session_closed};
    struct session *session = memory_allocate(1, sizeof(*session));
    *session = (struct session){.member = member, .chief = *chief, .heard_ms = clock_monotonic_ms()};
    if (rpc_stream_open(member->rpc, chief->address, chief->port, CREW_METHOD_JOIN, 0, &events, session,
                        &session->stream, NULL) < 0) {
        free(session);
        return;
    }
    member->session = session;
    pthread_mutex_lock(&member->lock);
    member->reported = false;
    pthread_mutex_unlock(&member->lock);
    member_say_join(member);
    member_say_standing_if_due(member);
}

void member_dial_chief(struct member *member, int64_t now)
{
    struct collective_peer named = {.port = member->seats[0].port};
    if (now < member->next_dial_ms)
        return;
    if (member->called_from.port != 0)
        session_open(member, &member->called_from);
    else if (address_book_ask(member->book, 0, named.address))
        session_open(member, &named);
}

void member_tend_session(struct member *member, int64_t now)
{
    if (member->session == NULL) {
        member_dial_chief(member, now);
        return;
    }
    /* While we were frozen ourselves, the chief's beats lay unread. */
    if (now - member->last_tick_ms > member->options.suspicion_ms)
        member->session->heard_ms = now;
    if (now - member->session->heard_ms >= member->options.death_ms)
        member_drop_session(member, "the chief is silent");
}
