/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker's connections to its peers in a PeerToPeer crew. A thread of its own
 * (the rpc's) keeps a stream to every member of the world, serves theirs, and
 * moves parts between them and the replica. The trainer only leaves word here and
 * goes on; nothing it calls waits for a peer but peer_hub_answer, which has a
 * deadline.
 *
 * To each peer there is one change under way and one in which all that comes
 * meanwhile is added up: a slow peer gets fewer and larger changes, and no queue
 * grows. Who is not in the world any more is dropped with what waits for it.
 */
#ifndef COXSWAIN_STRATEGY_PEER_HUB_H
#define COXSWAIN_STRATEGY_PEER_HUB_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "worker/coordination/member.h"
#include "worker/strategy/peer_replica.h"

struct peer_hub;

#define PEER_STALL_MAX 512

struct peer_hub_options {
    const char *job_uid; /* copied */
    uint32_t attempt, epoch;
    unsigned seat;
    const char *listen_address; /* as member_options */
    uint16_t port;              /* or any free one */
    int64_t suspicion_ms;       /* before peer_hub_take_stall names a peer that does not answer; 0: 2000 */
};

/* Listens; turns peers away until the first world. */
int peer_hub_open(const struct peer_hub_options *options, struct peer_hub **ret_hub, struct error *error);
/* Ends the thread: the replica is used no more. */
void peer_hub_stop(struct peer_hub *hub);
void peer_hub_free(struct peer_hub *hub);
uint16_t peer_hub_port(const struct peer_hub *hub);

/* Before the first world. The replica outlives peer_hub_stop. */
void peer_hub_serve(struct peer_hub *hub, struct peer_replica *replica);
void peer_hub_set_world(struct peer_hub *hub, const struct world *world);

/* Where our next examples begin in our order: behind those that our replica has. The trainer asks before each step. It is further on
 * than what we have finished when our replica has met one that has more of this seat, of a forerunner. */
int64_t peer_hub_place(struct peer_hub *hub);
/* To be added by every peer; with it we have finished so many examples. */
void peer_hub_publish(struct peer_hub *hub, const float *change, int64_t examples);
/* Meets the peer half-way, unless a meeting is under way or it is not in the world. With one that is not connected the meeting waits,
 * and so does the next, until it connects or leaves the world. */
void peer_hub_meet(struct peer_hub *hub, unsigned seat);
/* Instead of a meeting with another that is not connected, or of which nothing has come for so long. What its late answer tells still
 * counts. False: there is no such meeting, or this peer is not connected either. */
bool peer_hub_meet_instead(struct peer_hub *hub, unsigned seat, int64_t silence_ms);
/* Of our own examples: how many are in no other replica. */
int64_t peer_hub_unhanded(struct peer_hub *hub);
/* Whether a meeting is under way. */
bool peer_hub_meets(struct peer_hub *hub);
bool peer_hub_is_connected(struct peer_hub *hub, unsigned seat);
/* Whether it has taken all changes that it was sent. */
bool peer_hub_has_taken(struct peer_hub *hub, unsigned seat);
/* For who is about to go. Waits for at most so long as something is under way to a peer; then whether all that this replica has done is
 * with others: changes with all who can take them, and every example with one other at least, or else a meeting
 * with any of them would bring it there. */
enum peer_handing { PEER_HANDING_UNDER_WAY, PEER_HANDING_WANTS_MEETING, PEER_HANDING_DONE };
enum peer_handing peer_hub_handing(struct peer_hub *hub, int64_t timeout_ms);
/* Names those to whom something is still under way, a blank between them; "": there are none. */
void peer_hub_name_waited(struct peer_hub *hub, char text[PEER_STALL_MAX]);
/* Asks a peer for its whole state: parameters, slots. One question at a time; the vectors are written until it is answered. */
void peer_hub_ask(struct peer_hub *hub, unsigned seat, float *const *ret_vectors);
/* Waits for the answer for at most so long. FAILED: out of reach. */
enum peer_answer { PEER_ANSWER_PENDING, PEER_ANSWER_STATE, PEER_ANSWER_NOTHING, PEER_ANSWER_FAILED };
enum peer_answer peer_hub_answer(struct peer_hub *hub, int64_t timeout_ms);
/* The state that was fetched last is now our replica, and has what its giver's had. */
void peer_hub_adopt(struct peer_hub *hub);
/* How long nothing of the answer has come: a large state takes as long as it takes. */
int64_t peer_hub_silence_ms(struct peer_hub *hub);
/* Gives the question up. */
void peer_hub_forget(struct peer_hub *hub);

/* A peer that has not answered for long: rank, role, address, and what it was asked; once, until it answers in good time again
 * or greets anew.
 * False: there is no news. Nobody waits for it; the coordinator drops it when it stays silent. */
bool peer_hub_take_stall(struct peer_hub *hub, char text[PEER_STALL_MAX]);

/* Examples finished by each seat, as far as is known here; never fewer than before, but that a newcomer knows what the giver of its
 * state does, or what is in its checkpoint, and tells nothing until then: what it has heard before may be lost with who said it. Of its own a member tells only those that
 * another replica has taken in (an update, a meeting, a state): what a killed one has told is lost with nobody, and the rest is not
 * counted, but done again by its successor. A seat's examples count by how far they reach in its order: those that two processes have
 * taken there count once. */
void peer_hub_count(struct peer_hub *hub, unsigned seat, int64_t examples);
/* Our state is a checkpoint's, which has these. Returns how many more counted by what was heard before: they are in no replica that has
 * been found. Whoever has them after all brings them when it comes. */
int64_t peer_hub_restore(struct peer_hub *hub, const int64_t counts[CREW_SIZE_MAX]);
/* Of all seats at one moment; returns their sum. */
int64_t peer_hub_read_counts(struct peer_hub *hub, int64_t ret_counts[CREW_SIZE_MAX]);
int64_t peer_hub_total(struct peer_hub *hub);
/* Of those that count: how many our replica lacks. */
int64_t peer_hub_lacking(struct peer_hub *hub);

/* The chief: tells all peers, those to come too, that the result is stored. The others: whether they have been told. */
void peer_hub_say_done(struct peer_hub *hub);
bool peer_hub_is_done(struct peer_hub *hub);

#endif
