/* SPDX-License-Identifier: Apache-2.0
 *
 * Who has what of whose examples, as one member of a PeerToPeer crew knows it. A
 * seat's examples have an order, which its members go through one after another,
 * so that a number says which of them: the first so many.
 *
 *     counts     finished by each seat, as far as is known; the crew's progress
 *     held       of these, those that our replica has
 *     handed     of our own, those that another replica has: what may be told
 *
 * No lock: peer_hub's guards it.
 */
#ifndef COXSWAIN_STRATEGY_PEER_LEDGER_H
#define COXSWAIN_STRATEGY_PEER_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/comm/collective.h"

/* By seat: so many of its examples, in the order in which it finished them, are in a replica. */
struct holdings {
    int64_t counts[CREW_SIZE_MAX];
};

struct peer_ledger {
    unsigned seat;             /* ours */
    struct holdings counts;    /* never fewer than before, but that a newcomer begins anew */
    struct holdings forgotten; /* what had counted then */
    struct holdings held;      /* of our own examples: */
    int64_t own;               /* what our replica has; a forerunner may have handed on more than that */
    int64_t begun;             /* where the step that is under way began */
    int64_t handed;            /* what some other replica has */
};

/* What our replica has. */
struct holdings peer_ledger_holdings(const struct peer_ledger *ledger);
/* What we tell: of our own what would outlive us. */
struct holdings peer_ledger_told(const struct peer_ledger *ledger);
int64_t peer_ledger_total(const struct peer_ledger *ledger);
/* Of those that count, and not in our replica. */
int64_t peer_ledger_lacking(const struct peer_ledger *ledger);
/* Our own that no other replica has. */
int64_t peer_ledger_unhanded(const struct peer_ledger *ledger);

/* Where our next examples are, behind what our replica has; with that a step begins. */
int64_t peer_ledger_begin(struct peer_ledger *ledger);
/* It is over, and our replica has the first so many of ours, or all that it had if those are more. */
void peer_ledger_finish(struct peer_ledger *ledger, int64_t examples);
/* Somebody says that these count. */
void peer_ledger_hear(struct peer_ledger *ledger, const int64_t counts[CREW_SIZE_MAX]);
/* Our replica has taken in what has these. */
void peer_ledger_hold(struct peer_ledger *ledger, const int64_t counts[CREW_SIZE_MAX]);
/* Another replica has so many of ours. */
void peer_ledger_hand(struct peer_ledger *ledger, int64_t examples);

/* A newcomer's: what it has heard may be lost with who said it. */
void peer_ledger_forget(struct peer_ledger *ledger);
/* Our replica is a copy of one that has these. */
void peer_ledger_adopt(struct peer_ledger *ledger, const int64_t counts[CREW_SIZE_MAX]);
/* Our replica is a checkpoint that has these. Returns how many more had ever counted. */
int64_t peer_ledger_restore(struct peer_ledger *ledger, const int64_t counts[CREW_SIZE_MAX]);

#endif
