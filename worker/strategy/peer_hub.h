/* SPDX-License-Identifier: Apache-2.0
 *
 * Connects a worker to its peers in a PeerToPeer crew, in which every worker trains at its own pace, sends the changes of
 * its parameters to all others, and now and then averages its parameters with those of one peer (a "meeting").
 *
 * A separate thread (the rpc's) keeps a stream to every other member of the world (the crew's current list of members),
 * serves their streams, and moves parts of the parameters between peers and the replica (peer_replica.h). The trainer's
 * calls only leave requests and return at once, except peer_hub_answer and peer_hub_handing, which wait until a
 * deadline. To "have" an example means that the replica's parameters contain the change that a worker computed from it.
 *
 * For each peer there is at most one change under way, and one in which all later changes are added
 * up: a slow peer gets fewer and larger changes, and no queue grows. When a peer leaves the world,
 * the changes that wait for it are dropped.
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
    uint32_t attempt, incarnation;
    unsigned seat;
    const char *listen_address; /* as in member_options */
    uint16_t port;              /* 0, or in use: any free one */
    int64_t suspicion_ms;       /* before peer_hub_take_stall names a peer that does not answer; 0: 2000 */
};

/* Starts listening; refuses peers until the first world. */
int peer_hub_open(const struct peer_hub_options *options, struct peer_hub **ret_hub, struct error *error);
/* Stops the thread; the replica is not used any more. */
void peer_hub_stop(struct peer_hub *hub);
void peer_hub_free(struct peer_hub *hub);
uint16_t peer_hub_port(const struct peer_hub *hub);

/* Sets the replica that peers see. Call it before the first world. The replica must not be freed
 * before peer_hub_stop. */
void peer_hub_serve(struct peer_hub *hub, struct peer_replica *replica);
/* Connects to the members of `world`, which is copied, and drops those that are no longer in it. */
void peer_hub_set_world(struct peer_hub *hub, const struct world *world);

/* Starts a step: returns the position in this seat's order of examples at which the step begins, after those
 * that this replica has. The trainer calls it before each step. The position may be ahead of the examples that
 * this member has computed: a peer's replica may have had examples that an earlier pod of this seat computed. */
int64_t peer_hub_place(struct peer_hub *hub);
/* Sends `change` (one value for each parameter; copied) to every peer in the world, to be added there, and records
 * that this seat's first `examples` examples are finished. */
void peer_hub_publish(struct peer_hub *hub, const float *change, int64_t examples);
/* Starts a meeting with the peer of `seat`, in which both replicas move to the mean of their parameters. Does nothing
 * if a meeting is under way or the peer is not in the world. A meeting with a peer that is not
 * connected waits until it connects or leaves the world; so does any later one. */
void peer_hub_meet(struct peer_hub *hub, unsigned seat);
/* Replaces the meeting under way by one with `seat`, if its peer is not connected or has not
 * answered for `silence_ms`. A late answer of the former peer still counts. Returns false if
 * there is no such meeting or `seat` is not connected either. */
bool peer_hub_meet_instead(struct peer_hub *hub, unsigned seat, int64_t silence_ms);
/* Returns how many of this member's own examples no other replica has. */
int64_t peer_hub_unhanded(struct peer_hub *hub);
/* Returns whether a meeting is under way. */
bool peer_hub_meets(struct peer_hub *hub);
bool peer_hub_is_connected(struct peer_hub *hub, unsigned seat);
/* Returns whether the peer has taken all changes that it was sent, or is not in the world. */
bool peer_hub_has_taken(struct peer_hub *hub, unsigned seat);
/* For a member that is about to leave: waits at most `timeout_ms` while a change or a meeting is
 * under way. Then returns whether the peers have taken all changes and every example of this
 * member is in another replica (DONE), or some examples still need a meeting to get there
 * (WANTS_MEETING). */
enum peer_handing { PEER_HANDING_UNDER_WAY, PEER_HANDING_WANTS_MEETING, PEER_HANDING_DONE };
enum peer_handing peer_hub_handing(struct peer_hub *hub, int64_t timeout_ms);
/* Writes the names of the peers to which something is under way, separated by blanks; "" if
 * there are none. */
void peer_hub_name_waited(struct peer_hub *hub, char text[PEER_STALL_MAX]);
/* Asks a peer for its whole state: parameters, then slots. One request at a time; the vectors
 * are written until it is answered. */
void peer_hub_ask(struct peer_hub *hub, unsigned seat, float *const *ret_vectors);
/* Waits at most `timeout_ms` for the answer. PENDING: none yet; STATE: the vectors are filled; NOTHING: the peer holds no state; FAILED:
 * the peer is out of reach. */
enum peer_answer { PEER_ANSWER_PENDING, PEER_ANSWER_STATE, PEER_ANSWER_NOTHING, PEER_ANSWER_FAILED };
enum peer_answer peer_hub_answer(struct peer_hub *hub, int64_t timeout_ms);
/* Records that the trainer has replaced its state by the one that peer_hub_ask has fetched, so that this replica has
 * the same examples as the peer that sent it. */
void peer_hub_adopt(struct peer_hub *hub);
/* Returns how many milliseconds ago the last part of the answer to peer_hub_ask arrived; until a part has arrived, how long ago the request
 * was made or sent. A caller limits this time rather than that of the whole answer, because a large state may take long. */
int64_t peer_hub_silence_ms(struct peer_hub *hub);
/* Gives up the request of peer_hub_ask; its vectors are not written any more. */
void peer_hub_forget(struct peer_hub *hub);

/* Writes a message about a peer that has not answered for suspicion_ms: its rank, role and address, and the request. Returns false if there
 * is no such peer, or if it was reported already and has neither answered nor reconnected since. Training does not wait for it; the
 * coordinator removes a peer that stays silent from the crew. */
bool peer_hub_take_stall(struct peer_hub *hub, char text[PEER_STALL_MAX]);

/* Raises a seat's count of finished examples to `examples`. A seat's examples are counted by how far they reach in its order, so those
 * that two processes computed count once.
 *
 * Counts never decrease, except in a newcomer. Until it has a state, a newcomer announces nothing; it then takes the counts of the peer
 * that gave it the state, or those of the checkpoint, because the peers that told it more may have been lost since. A member announces
 * its own examples only once another replica has them (by an update, a meeting or a state). So if it is killed, no announced example is
 * lost, and its successor computes the others again. */
void peer_hub_count(struct peer_hub *hub, unsigned seat, int64_t examples);
/* Resets the counts to those of the checkpoint that is now the state. Returns how many more
 * examples had been counted; they are in no replica that was found. A member that has them after
 * all brings them when it joins. */
int64_t peer_hub_restore(struct peer_hub *hub, const int64_t counts[CREW_SIZE_MAX]);
/* Reads the counts of all seats at one moment; returns their sum. */
int64_t peer_hub_read_counts(struct peer_hub *hub, int64_t ret_counts[CREW_SIZE_MAX]);
int64_t peer_hub_total(struct peer_hub *hub);
/* Returns how many of the counted examples this replica lacks. */
int64_t peer_hub_lacking(struct peer_hub *hub);

/* For the chief: announces to all peers, also to those that connect later, that the result is stored. */
void peer_hub_say_done(struct peer_hub *hub);
/* Returns whether the chief has announced to this member that the result is stored. */
bool peer_hub_is_done(struct peer_hub *hub);

#endif
