/* SPDX-License-Identifier: Apache-2.0
 *
 * The coordinator's mind: who sits where, in which generation, and what the crew
 * waits for. A state machine without clock, sockets or threads: events and `now`
 * (milliseconds on a clock that never jumps) go in, messages come out through
 * `send`, so every order of events can be tested. coordination/chief.c wires it
 * to streams.
 *
 * Rules:
 * - A join is refused when it names another job or an impossible seat
 *   (REFUSE_OTHER_JOB, REFUSE_BAD_SEAT), or an epoch lower than the seat's
 *   highest so far, or an attempt lower than ours (REFUSE_STALE). A join with an
 *   epoch equal to or higher than the seated one's replaces it.
 * - Members that name an arithmetic compute alike. The first world takes the best
 *   that all of it have (arithmetic.h), or, where they have none in common, the
 *   chief's; a new chief takes that of the first survivor who holds state. When
 *   somebody of a later world lacks it, that world and all after it take the best
 *   that it leaves. Who has nothing in common with the crew, a GPU among CPUs, is
 *   refused (REFUSE_ARITHMETIC), the chief's own seat too.
 * - A chief does not know what its forerunner knew: each standing brings the
 *   epochs of the last world, and whoever sits with a lower one loses the seat.
 * - A seated member that has followed a chief of a newer generation supersedes
 *   ours: the chief's own seat is refused (REFUSE_STALE), nothing more is named.
 * - A seat is lost when its stream closes, or when nothing was heard for
 *   `death_ms`. Whoever was seated then can come back only by a new join; while
 *   its old stream still speaks it is told that it is superseded.
 * - Losing a seat in a named world ends that generation: survivors are told to
 *   reform and stay. A goodbye does not; the next step that misses it does.
 * - A standing of a member of the newest world that names an older one was said
 *   before the member heard of it, and is void: another comes.
 * - When all seats are taken and each has reported its standing since the last
 *   generation ended, the next world is named: counter + 1, the state from the
 *   replica with the highest applied step (lowest rank among equals), or from
 *   the chief when nobody holds any.
 * - An elastic crew (`least` < `size`) has seats that may stay empty. A world is
 *   made of the chief and whoever else has reported, once there are `least` of
 *   them and everybody of the last world who is still here has reported; ranks
 *   are the seats in use, counted from 0. A new coordinator first waits for the
 *   seats below `expected`, at most `start_ms`: survivors of an earlier chief
 *   must have the time to bring their state.
 * - Who joins while a world is in force waits: coordinator_newcomers tells the
 *   chief, whose trainer has all go to a step boundary and report as `planned`.
 *   Planned reports end no generation; when the whole world has given them the
 *   next one is named at once.
 * - A loose crew (PeerToPeer) agrees on its first world only. After that each
 *   change of membership names the next one at once, for everybody who is there;
 *   nobody is told to reform.
 */
#ifndef COXSWAIN_COORDINATION_COORDINATOR_H
#define COXSWAIN_COORDINATION_COORDINATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/coordination/member.h"
#include "worker/coordination/message.h"

/* A stream to a member, as the wiring knows it; never 0. */
typedef uint64_t coordinator_link;

struct coordinator_options {
    const char *job_uid;
    struct generation generation; /* attempt and epoch of the chief; counter to start from */
    unsigned size;                /* seats */
    unsigned least, expected;     /* members of the smallest world, of the first; 0: size */
    int64_t start_ms;             /* how long the first world waits for the expected */
    bool loose;
    const struct crew_seat *seats; /* for names only */
    unsigned logical_shards;
    int64_t suspicion_ms, death_ms;
    /* Out: `close` asks for the stream to be ended after the message. */
    void (*send)(void *context, coordinator_link link, const struct coordination_message *message, bool close);
    void *context;
};

struct coordinator;

struct coordinator *coordinator_new(const struct coordinator_options *options);
void coordinator_free(struct coordinator *coordinator);

void coordinator_receive(struct coordinator *coordinator, coordinator_link link,
                         const struct coordination_message *message, int64_t now_ms);
/* The stream is gone. `why` is for people. */
void coordinator_link_closed(struct coordinator *coordinator, coordinator_link link, const char *why, int64_t now_ms);
/* Looks at silences; call a few times a second. What has come since `read_until_ms` may not all have been received yet: nobody is
 * silent for longer than until then, unless that is long ago. */
void coordinator_tick(struct coordinator *coordinator, int64_t read_until_ms, int64_t now_ms);

/* As member_describe. */
void coordinator_describe(const struct coordinator *coordinator, int64_t now_ms, char text[MEMBER_TEXT_MAX]);
/* True for a seat that nobody live holds. */
bool coordinator_seat_empty(const struct coordinator *coordinator, unsigned rank);
/* Of who has the seat, or had it last. */
uint32_t coordinator_seat_epoch(const struct coordinator *coordinator, unsigned rank);
/* True for an empty seat whose member may be there and not know of this chief: the chief calls it. */
bool coordinator_seat_missing(const struct coordinator *coordinator, unsigned rank);
/* How many have joined and wait for a step boundary of the world in force. */
unsigned coordinator_newcomers(const struct coordinator *coordinator);

#endif
