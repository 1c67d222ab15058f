/* SPDX-License-Identifier: Apache-2.0
 *
 * The chief's part: wires the coordinator to streams, and calls the members of
 * empty seats, so that survivors of an earlier chief find this one. Everything
 * runs on the rpc's thread.
 */
#ifndef COXSWAIN_COORDINATION_CHIEF_H
#define COXSWAIN_COORDINATION_CHIEF_H

#include "worker/comm/rpc.h"
#include "worker/coordination/coordinator.h"

#define CREW_METHOD_JOIN "/coxswain.Crew/Join"
#define CREW_METHOD_SUMMON "/coxswain.Crew/Summon"

/* The chief's own member has no stream; its link is this one. */
#define CHIEF_OWN_LINK ((coordinator_link)1)

struct address_book;
struct chief;

struct chief_options {
    struct rpc *rpc;
    struct address_book *book;
    struct coordinator_options coordinator; /* `send` and `context` are the chief's to fill */
    struct collective_peer where;           /* of our rpc server */
    int64_t beat_ms;
    /* What the coordinator says to our own member. */
    void (*told)(void *context, const struct coordination_message *message);
    /* A member knows a newer chief than us. */
    void (*superseded)(void *context, const char *text);
    void *context;
};

struct chief *chief_new(const struct chief_options *options);
/* After the rpc's end. */
void chief_free(struct chief *chief);

/* For rpc_method.opened of CREW_METHOD_JOIN. */
void chief_accept(struct chief *chief, struct rpc_stream *stream, struct rpc_stream_events *ret_events,
                  void **ret_context);
/* Our own member speaks. */
void chief_hear(struct chief *chief, const struct coordination_message *message);
void chief_tick(struct chief *chief);
/* How many wait for a step boundary. */
unsigned chief_newcomers(const struct chief *chief);
/* Whether somebody has that seat, and in which epoch. */
bool chief_seats(const struct chief *chief, unsigned seat, uint32_t *ret_epoch);
/* True when no other member is connected. */
bool chief_is_alone(const struct chief *chief);

#endif
