/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps track of which training examples each replica of a PeerToPeer crew has learned from, as far as one member
 * knows. peer_hub.c uses it, so that a replaced worker goes on where its predecessor stopped, and the crew's progress
 * counts each example once.
 *
 * Each seat (a place in the crew, such as worker 1, that stays the same when its pod is replaced) has its own order of
 * examples. Its successive members go through that order one after another, so a single number n identifies a set of
 * examples: the first n of that seat.
 *
 *     counts     examples of each seat known to be finished; their sum is the crew's progress
 *     held       examples of other seats that this member's replica has
 *     own        examples of this member's own seat that its replica has
 *     replicated examples of its own seat that another replica has; only these are announced
 *
 * There is no lock in the ledger: the caller's lock (peer_hub's) guards it.
 */
#ifndef COXSWAIN_STRATEGY_PEER_LEDGER_H
#define COXSWAIN_STRATEGY_PEER_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/comm/collective.h"

/* For each seat, how many of its examples, in its order, are in a replica. */
struct holdings {
    int64_t counts[CREW_SIZE_MAX];
};

struct peer_ledger {
    unsigned seat;             /* ours */
    struct holdings counts;    /* never decreases, except when a newcomer starts anew (peer_ledger_forget) */
    struct holdings forgotten; /* the largest counts before peer_ledger_forget */
    struct holdings held;      /* counts[seat] is not used: `own` has it */
    int64_t own;               /* of our own examples, those in our replica */
    int64_t begun;             /* of our own examples, those before the current step */
    int64_t replicated; /* of our own examples, those in another replica; above `own` if our predecessor sent more */
};

/* Returns what this member's replica has, its own seat included. */
struct holdings peer_ledger_holdings(const struct peer_ledger *ledger);
/* Returns the counts to announce: of its own seat, only the examples that another replica has
 * and that would survive this member. */
struct holdings peer_ledger_announced(const struct peer_ledger *ledger);
int64_t peer_ledger_total(const struct peer_ledger *ledger);
/* Returns how many of the counted examples this member's replica lacks. */
int64_t peer_ledger_lacking(const struct peer_ledger *ledger);
/* Returns how many of this member's own examples no other replica has. */
int64_t peer_ledger_unreplicated(const struct peer_ledger *ledger);

/* Starts a step: returns the position of the next examples in this seat's order. */
int64_t peer_ledger_begin(struct peer_ledger *ledger);
/* Ends the step: this member's replica has the first `examples` of its seat, or more if it had
 * more. */
void peer_ledger_finish(struct peer_ledger *ledger, int64_t examples);
/* Raises the counts to those that a peer announced. */
void peer_ledger_merge_announced(struct peer_ledger *ledger, const int64_t counts[CREW_SIZE_MAX]);
/* Raises the counts and what this member's replica has, after it has merged data with these
 * counts. */
void peer_ledger_merge_held(struct peer_ledger *ledger, const int64_t counts[CREW_SIZE_MAX]);
/* Records that another replica has the first `examples` of this member's seat. */
void peer_ledger_mark_replicated(struct peer_ledger *ledger, int64_t examples);

/* Resets the counts of a newcomer: what it has heard may have been lost with the peer that
 * announced it. */
void peer_ledger_forget(struct peer_ledger *ledger);
/* Records that this member's replica is now a copy of one with these counts. Its next step
 * starts behind all examples of its seat that are known to be finished. */
void peer_ledger_adopt(struct peer_ledger *ledger, const int64_t counts[CREW_SIZE_MAX]);
/* Resets the ledger to a checkpoint with these counts. Returns how many examples had been
 * counted at any time and are not in the checkpoint. */
int64_t peer_ledger_restore(struct peer_ledger *ledger, const int64_t counts[CREW_SIZE_MAX]);

#endif
