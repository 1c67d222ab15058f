/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the internals of a member (member.h), for the files that together keep a process connected to its crew:
 * member.c (life cycle), member_world.c (messages from the coordinator), member_session.c (the stream to the chief),
 * member_summons.c (calls from a new chief), member_trainer.c (the trainer's calls). Only they include this header.
 */
#ifndef COXSWAIN_COORDINATION_MEMBER_PARTS_H
#define COXSWAIN_COORDINATION_MEMBER_PARTS_H

#include <pthread.h>

#include "common/clock.h"
#include "worker/comm/rpc.h"
#include "worker/coordination/address_book.h"
#include "worker/coordination/chief.h"
#include "worker/coordination/member.h"
#include "worker/coordination/message.h"

/* A stream to the chief's coordinator. The member follows one at a time; an older one may still
 * be closing. */
struct session {
    struct member *member;
    struct rpc_stream *stream;
    struct collective_peer chief; /* where it leads */
    int64_t heard_ms;
    bool heard;      /* anything at all from a chief that we may follow */
    bool superseded; /* this one is older than one we know */
};

struct member {
    struct member_options options;
    struct crew_seat seats[CREW_SIZE_MAX];
    char *job_uid;
    uint64_t nonce;
    char arithmetic[ARITHMETIC_MAX];
    int wanted_threads; /* those of the crew, which has refused this member for another number; 0: it has not */
    struct collective_peer data; /* announced */
    struct rpc *rpc;
    struct rpc_server *server;
    struct address_book *book;

    /* The rpc's thread only. */
    struct chief *chief; /* rank 0 */
    struct session *session;
    int64_t next_dial_ms, next_beat_ms, last_tick_ms;
    struct collective_peer called_from; /* where a summons came from; port 0: none */
    bool own_joined;                    /* rank 0: has told the coordinator that it is there */

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    struct error fatal;                   /* kind ERROR_NONE: none */
    struct generation known;              /* the highest that we have been in or heard of */
    uint32_t incarnations[CREW_SIZE_MAX]; /* of all members, as far as worlds have told */
    bool in_force;                        /* `known` names a world that has not ended */
    char ended[COORDINATION_TEXT_MAX];    /* why the last one ended */
    struct member_standing standing;
    bool stands; /* loose crews: `standing` is kept up to date */
    bool agreeing, reported, world_ready, cancelled;
    struct world world;
    struct collective *group;
    bool newcomers; /* rank 0 */
    /* Rank 0: which seats are taken, by which incarnations, as of the last tick, and the generation at that tick. */
    bool seated[CREW_SIZE_MAX];
    uint32_t seated_incarnations[CREW_SIZE_MAX];
    struct generation seated_since;
    char waiting[MEMBER_TEXT_MAX];
    int64_t step;
    int64_t unled_since_ms; /* without a chief; 0: has one */
    bool leaving, left;
};

/* member_world.c. Handles a message from the coordinator, which comes by stream or, in the
 * chief, directly; `context` is the member. */
void member_told(void *context, const struct coordination_message *message);
/* Handles the report that a member of this chief's crew knows a newer chief. */
void member_superseded(void *context, const char *text);
/* Handles a chief of another protocol: every other chief of this crew will have it, too. */
void member_not_understood(struct member *member, const char *why);
/* With the lock held. */
void member_lose_chief(struct member *member, const char *why);

/* member_session.c, on the rpc's thread only. */
void member_say_join(struct member *member);
void member_say_standing_if_due(struct member *member);
void member_say_beat_if_due(struct member *member, int64_t now);
void member_say_leave_if_asked(struct member *member);
/* Dials the chief if there is no session; drops a session whose chief has been silent for too
 * long. */
void member_tend_session(struct member *member, int64_t now);
void member_dial_chief(struct member *member, int64_t now);
void member_drop_session(struct member *member, const char *why);

/* member_summons.c. For rpc_method.opened of CREW_METHOD_SUMMON. */
void member_summons_opened(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events,
                           void **ret_context);

#endif
