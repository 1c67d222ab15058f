/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/peer_ledger.h"

#include <criterion/criterion.h>

#define OWN 1

static void finish(struct peer_ledger *ledger, int64_t examples)
{
    (void)peer_ledger_begin(ledger);
    peer_ledger_finish(ledger, examples);
}

static void expect_counts(const struct holdings *holdings, int64_t first, int64_t second, int64_t third)
{
    cr_expect_eq(holdings->counts[0], first, "%lld", (long long)holdings->counts[0]);
    cr_expect_eq(holdings->counts[1], second, "%lld", (long long)holdings->counts[1]);
    cr_expect_eq(holdings->counts[2], third, "%lld", (long long)holdings->counts[2]);
}

Test(peer_ledger, only_own_examples_that_another_replica_has_are_announced)
{
    struct peer_ledger ledger = {.seat = OWN};
    finish(&ledger, 8);
    finish(&ledger, 16);
    peer_ledger_mark_replicated(&ledger, 8);
    peer_ledger_merge_announced(&ledger, (int64_t[CREW_SIZE_MAX]){24, 0, 3});
    const struct holdings announced = peer_ledger_announced(&ledger), holdings = peer_ledger_holdings(&ledger);
    expect_counts(&announced, 24, 8, 3);
    expect_counts(&holdings, 0, 16, 0);
    cr_expect_eq(peer_ledger_total(&ledger), 24 + 16 + 3);
    cr_expect_eq(peer_ledger_lacking(&ledger), 24 + 3);
    cr_expect_eq(peer_ledger_unreplicated(&ledger), 8);
}

Test(peer_ledger, what_is_heard_of_our_own_seat_counts_and_does_not_move_us)
{
    struct peer_ledger ledger = {.seat = OWN};
    finish(&ledger, 8);
    peer_ledger_merge_announced(&ledger, (int64_t[CREW_SIZE_MAX]){0, 40, 0});
    finish(&ledger, 16);
    cr_expect_eq(peer_ledger_begin(&ledger), 16);
    expect_counts(&ledger.counts, 0, 40, 0);
    peer_ledger_merge_held(&ledger, (int64_t[CREW_SIZE_MAX]){0, 32, 0});
    cr_expect_eq(peer_ledger_begin(&ledger), 32, "our replica has them now");
    finish(&ledger, 40);
    finish(&ledger, 48);
    expect_counts(&ledger.counts, 0, 48, 0);
}

/* A meeting during the step. */
Test(peer_ledger, a_step_whose_examples_have_come_meanwhile_changes_nothing)
{
    struct peer_ledger ledger = {.seat = OWN};
    (void)peer_ledger_begin(&ledger);
    peer_ledger_merge_held(&ledger, (int64_t[CREW_SIZE_MAX]){0, 32, 0});
    peer_ledger_finish(&ledger, 8);
    cr_expect_eq(peer_ledger_begin(&ledger), 32);
    cr_expect_eq(peer_ledger_total(&ledger), 32);
}

Test(peer_ledger, a_newcomer_goes_on_where_its_forerunner_was_by_what_is_known)
{
    struct peer_ledger ledger = {.seat = OWN};
    peer_ledger_merge_announced(&ledger, (int64_t[CREW_SIZE_MAX]){90, 90, 90});
    peer_ledger_forget(&ledger);
    peer_ledger_merge_announced(&ledger, (int64_t[CREW_SIZE_MAX]){24, 40, 0});
    peer_ledger_adopt(&ledger, (int64_t[CREW_SIZE_MAX]){24, 32, 0});
    cr_expect_eq(peer_ledger_begin(&ledger), 40);
    expect_counts(&ledger.counts, 24, 40, 0);
}

Test(peer_ledger, restoring_a_checkpoint_tells_what_is_lost)
{
    struct peer_ledger ledger = {.seat = OWN};
    peer_ledger_merge_announced(&ledger, (int64_t[CREW_SIZE_MAX]){90, 0, 20});
    peer_ledger_forget(&ledger);
    peer_ledger_merge_announced(&ledger, (int64_t[CREW_SIZE_MAX]){0, 50, 0});
    cr_expect_eq(peer_ledger_restore(&ledger, (int64_t[CREW_SIZE_MAX]){80, 30, 30}), 10 + 20);
    expect_counts(&ledger.counts, 80, 30, 30);
    cr_expect_eq(peer_ledger_begin(&ledger), 30);
    cr_expect_eq(peer_ledger_lacking(&ledger), 0);
    cr_expect_eq(peer_ledger_unreplicated(&ledger), 0, "the checkpoint outlives us");
}
