/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the coordinator (coordinator.h) in the chief's process: passes messages between it and the
 * streams on which the members have joined.
 *
 * If a seat (a place in the crew) has no member, the chief also dials the seat's pod by its host name and
 * asks it to join, so that a member that has survived an earlier chief finds this one. Everything runs
 * on the thread of the process's rpc server (rpc.h).
 */
#ifndef COXSWAIN_COORDINATION_CHIEF_H
#define COXSWAIN_COORDINATION_CHIEF_H

#include "worker/comm/rpc.h"
#include "worker/coordination/coordinator.h"

/* The RPC methods. A member calls Join in the chief's process; the chief calls Summon in a pod's process, to ask it to join. */
#define CREW_METHOD_JOIN "/coxswain.Crew/Join"
#define CREW_METHOD_SUMMON "/coxswain.Crew/Summon"

/* The chief's own member has no stream; this value is its link. */
#define CHIEF_OWN_LINK ((coordinator_link)1)

struct address_book;
struct chief;

struct chief_options {
    struct rpc *rpc;
    struct address_book *book;
    struct coordinator_options coordinator; /* the chief sets `send` and `context` */
    struct collective_peer where;           /* the address of this process's rpc server */
    int64_t beat_ms;                        /* interval between heartbeats to the members */
    /* Called with each message from the coordinator to the chief's own member. */
    void (*told)(void *context, const struct coordination_message *message);
    /* Called when a member has answered that it knows a newer chief than this one. */
    void (*superseded)(void *context, const char *text);
    void *context;
};

struct chief *chief_new(const struct chief_options *options);
/* Frees the chief. The rpc must have ended. Does nothing for NULL. */
void chief_free(struct chief *chief);

/* Accepts a member's stream; call it from rpc_method.opened of CREW_METHOD_JOIN. */
void chief_accept(struct chief *chief, struct rpc_stream *stream, struct rpc_stream_events *ret_events,
                  void **ret_context);
/* Passes a message from the chief's own member to the coordinator. */
void chief_hear(struct chief *chief, const struct coordination_message *message);
/* Sends heartbeats, runs coordinator_tick and asks the missing members to join. Call it at each tick of the rpc. */
void chief_tick(struct chief *chief);
/* Returns how many members have joined and wait for a step boundary. */
unsigned chief_newcomers(const struct chief *chief);
/* Returns whether the seat is taken, and sets *ret_incarnation to the incarnation of its present or last
 * member. */
bool chief_seats(const struct chief *chief, unsigned seat, uint32_t *ret_incarnation);
/* Returns true if no other member has a seat. */
bool chief_is_alone(const struct chief *chief);

#endif
