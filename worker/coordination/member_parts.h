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
    struct collective_peer chief; /* the address that was dialled */
    int64_t heard_ms;             /* when the chief's last message came */
    bool heard;                   /* a message has come from a chief that this member may follow */
    bool superseded;              /* this chief is older than one that the member knows */
};

struct member {
    struct member_options options;
    struct crew_seat seats[CREW_SIZE_MAX];
    char *job_uid;
    uint64_t nonce;
    char arithmetic[ARITHMETIC_MAX];
    int wanted_threads;          /* member_wanted_threads */
    struct collective_peer data; /* the address of this process's data port, as announced to the crew */
    struct rpc *rpc;
    struct rpc_server *server;
    struct address_book *book;

    /* The rpc's thread only. */
    struct chief *chief; /* rank 0 */
    struct session *session;
    int64_t next_dial_ms, next_beat_ms, last_tick_ms;
    struct collective_peer called_from; /* the chief that has asked this member to join; port 0: none */
    bool own_joined;                    /* rank 0: has sent its join to the coordinator */

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    struct error fatal;                   /* kind ERROR_NONE: none */
    struct generation known;              /* the highest generation that a message has named */
    uint32_t incarnations[CREW_SIZE_MAX]; /* by seat, as the last world gave them */
    bool in_force;                        /* the generation `known` has begun and not ended */
    char ended[COORDINATION_TEXT_MAX];    /* why the last generation ended */
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
    int64_t unled_since_ms; /* when the chief was lost; 0: the member has a chief */
    bool leaving, left;
};

/* member_world.c. Handles a message from the coordinator, which comes by stream or, in the
 * chief, directly; `context` is the member. */
void member_told(void *context, const struct coordination_message *message);
/* Handles the report that a member of this chief's crew knows a newer chief. */
void member_superseded(void *context, const char *text);
/* Fails the member because its chief speaks another protocol (comm/protocol.h): a later chief of this crew would too. */
void member_not_understood(struct member *member, const char *why);
/* Records that the member has no chief any more. Called with the lock held. */
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

/* member_summons.c. Accepts the stream on which a new chief asks this member to join it: rpc_method.opened of CREW_METHOD_SUMMON. */
void member_summons_opened(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events,
                           void **ret_context);

#endif
