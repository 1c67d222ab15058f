/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/peer_ledger.h"

#include <string.h>

#include "common/extremes.h"

static void raise_to(struct holdings *holdings, const int64_t counts[CREW_SIZE_MAX])
{
    for (unsigned seat = 0; seat < CREW_SIZE_MAX; seat++)
        holdings->counts[seat] = int64_max(holdings->counts[seat], counts[seat]);
}

static int64_t count_beyond(const int64_t counts[CREW_SIZE_MAX], const int64_t others[CREW_SIZE_MAX])
{
    int64_t beyond = 0;
    for (unsigned seat = 0; seat < CREW_SIZE_MAX; seat++)
        beyond += int64_max(counts[seat] - others[seat], 0);
    return beyond;
}

struct holdings peer_ledger_holdings(const struct peer_ledger *ledger)
{
    struct holdings holdings = ledger->held;
    holdings.counts[ledger->seat] = ledger->own;
    return holdings;
}

struct holdings peer_ledger_announced(const struct peer_ledger *ledger)
{
    struct holdings announced = ledger->counts;
    announced.counts[ledger->seat] = ledger->replicated;
    return announced;
}

int64_t peer_ledger_total(const struct peer_ledger *ledger)
{
    int64_t total = 0;
    for (unsigned seat = 0; seat < CREW_SIZE_MAX; seat++)
        total += ledger->counts.counts[seat];
    return total;
}

int64_t peer_ledger_lacking(const struct peer_ledger *ledger)
{
    const struct holdings holdings = peer_ledger_holdings(ledger);
    return count_beyond(ledger->counts.counts, holdings.counts);
}

int64_t peer_ledger_unreplicated(const struct peer_ledger *ledger)
{
    return int64_max(ledger->own - ledger->replicated, 0);
}

int64_t peer_ledger_begin(struct peer_ledger *ledger)
{
    ledger->begun = ledger->own;
    return ledger->begun;
}

void peer_ledger_finish(struct peer_ledger *ledger, int64_t examples)
{
    int64_t *count = &ledger->counts.counts[ledger->seat];
    ledger->begun = examples;
    ledger->own = int64_max(ledger->own, examples);
    *count = int64_max(*count, ledger->own);
}

void peer_ledger_merge_announced(struct peer_ledger *ledger, const int64_t counts[CREW_SIZE_MAX])
{
    raise_to(&ledger->counts, counts);
}

void peer_ledger_merge_held(struct peer_ledger *ledger, const int64_t counts[CREW_SIZE_MAX])
{
    raise_to(&ledger->held, counts);
    raise_to(&ledger->counts, counts);
    ledger->own = int64_max(ledger->own, counts[ledger->seat]);
}

void peer_ledger_mark_replicated(struct peer_ledger *ledger, int64_t examples)
{
    ledger->replicated = int64_max(ledger->replicated, examples);
}

void peer_ledger_forget(struct peer_ledger *ledger)
{
    raise_to(&ledger->forgotten, ledger->counts.counts);
    memset(&ledger->counts, 0, sizeof(ledger->counts));
}

/* The next step begins where the predecessor's known examples end: a peer that announced them has them, or knows a replica that does. */
void peer_ledger_adopt(struct peer_ledger *ledger, const int64_t counts[CREW_SIZE_MAX])
{
    peer_ledger_merge_held(ledger, counts);
    ledger->own = ledger->counts.counts[ledger->seat];
}

/* A successor that resumes from this checkpoint has these examples, too, so they count as replicated. */
int64_t peer_ledger_restore(struct peer_ledger *ledger, const int64_t counts[CREW_SIZE_MAX])
{
    peer_ledger_forget(ledger);
    memcpy(ledger->counts.counts, counts, sizeof(ledger->counts.counts));
    ledger->held = ledger->counts;
    ledger->own = ledger->begun = ledger->replicated = counts[ledger->seat];
    return count_beyond(ledger->forgotten.counts, counts);
}
