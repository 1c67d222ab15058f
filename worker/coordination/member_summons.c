/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/coordination/member_parts.h"

#include <stdio.h>
#include <string.h>

static void judge_summons(struct member *member, const struct coordination_message *summons,
                          struct coordination_message *answer)
{
    struct generation known = member->known;
    int order = generation_compare_chiefs(summons->generation, known);
    if (strcmp(summons->job_uid, member->job_uid) != 0) {
        answer->refusal = REFUSE_OTHER_JOB;
    } else if (order < 0) {
        answer->refusal = REFUSE_STALE;
        snprintf(answer->text, sizeof(answer->text),
                 "a chief of attempt %u, incarnation %u is superseded by one of attempt %u, incarnation %u",
                 summons->generation.attempt, summons->generation.incarnation, known.attempt, known.incarnation);
    } else if (order > 0 || member->session == NULL) {
        member->known.attempt = summons->generation.attempt;
        member->known.incarnation = summons->generation.incarnation;
        if (order > 0)
            member->known.counter = 0;
    }
}

/* Whether the session may stay when the chief that we know of calls: it leads there, as far as can be told. */
static bool session_serves(const struct session *session, const struct collective_peer *caller)
{
    if (session->heard || session->superseded)
        return !session->superseded;
    return session->chief.port == caller->port && strcmp(session->chief.address, caller->address) == 0;
}

static void follow_summons(struct member *member, const struct coordination_message *summons, bool newer)
{
    if (member->session != NULL && !newer && session_serves(member->session, &summons->peer))
        return;
    if (member->session != NULL)
        member_drop_session(member, "a new chief calls");
    member->called_from = summons->peer;
    member->next_dial_ms = 0;
    member_dial_chief(member, clock_monotonic_ms());
}

static void summons_message(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    struct member *member = context;
    struct coordination_message summons, answer = {.type = COORDINATION_SUMMONED};
    if (coordination_message_decode(bytes, length, &summons, NULL) < 0 || summons.type != COORDINATION_SUMMON) {
        rpc_stream_close(stream);
        return;
    }
    pthread_mutex_lock(&member->lock);
    bool newer = generation_compare_chiefs(summons.generation, member->known) > 0;
    judge_summons(member, &summons, &answer);
    pthread_mutex_unlock(&member->lock);
    SCOPED_BUFFER reply;
    buffer_init(&reply, COORDINATION_MESSAGE_MAX);
    if (coordination_message_encode(&answer, &reply, NULL) == 0)
        rpc_stream_send(stream, reply.data, reply.length);
    rpc_stream_close(stream);
    if (answer.refusal == REFUSE_NOT && member->chief == NULL)
        follow_summons(member, &summons, newer);
}

void member_summons_opened(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events,
                           void **ret_context)
{
    (void)stream;
    *ret_events = (struct rpc_stream_events){.message = summons_message};
    *ret_context = context;
}
