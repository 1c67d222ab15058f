/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides which process has which seat of the crew, when a generation begins and ends, and what the crew waits for. The
 * chief (worker 0, or the pod of role `chief`) runs it; coordination/chief.h connects it to the members' streams.
 *
 * It is a state machine without clock, sockets or threads. Events and `now` (milliseconds of a monotonic clock) go in,
 * messages come out through `send`, so every order of events can be tested.
 *
 * The crew is the pods that train one job together. A seat is a role and index in it, such as worker 1, and stays the
 * same when its pod is replaced; a member is the process that has the seat now. The operator gives every pod an
 * incarnation, higher than those of earlier pods, and an attempt, which counts how often the whole crew has started. A
 * world is a list of members and their ranks; naming it begins a generation. A standing is a member's report of which
 * state it holds, and of which step. To reform is to give up a generation and report a standing for the next.
 *
 * Rules:
 * - A join is refused if it names another job (REFUSE_OTHER_JOB) or an impossible seat
 *   (REFUSE_BAD_SEAT), an incarnation lower than the seat's highest so far, or an attempt lower than this
 *   coordinator's (both REFUSE_STALE). A join whose incarnation is equal or higher replaces the present
 *   member of the seat.
 * - Members that name an arithmetic must all compute with the same one. The first world uses the
 *   best that all its members support (arithmetic.h) or, if there is none, the chief's. A new chief
 *   uses that of the first survivor that holds state. If a member of a later world lacks it, that
 *   world and all later ones use the best that is left. A member that has none in common with the
 *   crew, such as a GPU among CPUs, is refused (REFUSE_ARITHMETIC); this includes the chief's own
 *   member.
 * - A new chief does not know what its predecessor knew. So each standing carries the incarnations of the
 *   last world, and a member whose incarnation is lower loses its seat.
 * - If a member has followed a chief of a newer generation, that chief supersedes this one: the
 *   chief's own member is refused (REFUSE_STALE), and no more worlds are named.
 * - A seat is lost when its stream closes, or when nothing was heard for `death_ms`. Its member can
 *   return only by a new join; while its old stream still sends, it is answered that it is
 *   superseded.
 * - Losing a seat of a named world ends that generation: the survivors stay and are asked to
 *   reform. An orderly leave does not end it; the next step that misses the member does.
 * - A standing that names an older world, from a member of the newest world, was sent before the
 *   member heard of the newest. It is ignored: another will come.
 * - When all seats are taken and each member has reported its standing since the last generation
 *   ended, the next world is named: counter + 1, with the state of the replica with the highest
 *   applied step (the lowest rank among equals), or of the chief if nobody holds state.
 * - An elastic crew (`least` < `size`) may have empty seats. A world consists of the chief and all
 *   others that have reported, once there are at least `least` of them and every remaining member
 *   of the last world has reported. Ranks number the seats in use from 0.
 * - The first world of a new coordinator waits at most `start_ms` for the seats below `expected` and
 *   for all others that have joined, so that survivors of an earlier chief have time to bring their
 *   state. A seat from `expected` on may have a survivor too, when the crew was made smaller just
 *   before the chief was lost: the first world waits for it until the chief knows that nobody is
 *   there (coordinator_seat_absent), but at most `death_ms`.
 * - A member that joins while a world is in force waits. coordinator_newcomers reports it to the
 *   chief, whose trainer makes all ranks stop at a step boundary and report as `planned`. Planned
 *   reports end no generation; when the whole world has sent them, the next world is named at once.
 * - A loose crew (PeerToPeer) agrees only on its first world. After that, each change of membership
 *   names the next world at once, for all present members; nobody is asked to reform.
 */
#ifndef COXSWAIN_COORDINATION_COORDINATOR_H
#define COXSWAIN_COORDINATION_COORDINATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/coordination/member.h"
#include "worker/coordination/message.h"

/* Identifies a stream to a member; never 0. */
typedef uint64_t coordinator_link;

struct coordinator_options {
    const char *job_uid;
    struct generation generation; /* attempt and incarnation of the chief; counter to start from */
    unsigned size;                /* seats */
    unsigned least, expected;     /* members of the smallest world, of the first; 0: size */
    int64_t start_ms; /* how long the first world waits for the seats below `expected` and all that have joined */
    bool loose;       /* see "A loose crew" above */
    const struct crew_seat *seats; /* for names only */
    unsigned logical_shards;
    int64_t suspicion_ms, death_ms; /* after this silence, a member is reported as silent, is lost */
    /* Sends a message; `close` asks to end the stream after it. */
    void (*send)(void *context, coordinator_link link, const struct coordination_message *message, bool close);
    void *context;
};

struct coordinator;

struct coordinator *coordinator_new(const struct coordinator_options *options);
void coordinator_free(struct coordinator *coordinator);

void coordinator_receive(struct coordinator *coordinator, coordinator_link link,
                         const struct coordination_message *message, int64_t now_ms);
/* Records that a stream has closed. `why` is for messages to people. */
void coordinator_link_closed(struct coordinator *coordinator, coordinator_link link, const char *why, int64_t now_ms);
/* Checks for silent members; call it a few times a second. What has arrived since
 * `read_until_ms` may not have been received yet, so silence counts only until then, unless that
 * is long ago. */
void coordinator_tick(struct coordinator *coordinator, int64_t read_until_ms, int64_t now_ms);

/* Writes what the crew waits for, as member_describe does. */
void coordinator_describe(const struct coordinator *coordinator, int64_t now_ms, char text[MEMBER_TEXT_MAX]);
/* Returns true if no live member has the seat. */
bool coordinator_seat_empty(const struct coordinator *coordinator, unsigned rank);
/* Returns the incarnation of the seat's present or last member. */
uint32_t coordinator_seat_incarnation(const struct coordinator *coordinator, unsigned rank);
/* Returns true if the seat is empty and its member may be running without knowing this chief;
 * the chief then calls it. */
bool coordinator_seat_missing(const struct coordinator *coordinator, unsigned rank);
/* Tells the coordinator that no process answers for the seat: its host has no address, or its port is closed. */
void coordinator_seat_absent(struct coordinator *coordinator, unsigned rank, int64_t now_ms);
/* Returns how many members have joined and wait for a step boundary of the world in force. */
unsigned coordinator_newcomers(const struct coordinator *coordinator);

#endif
