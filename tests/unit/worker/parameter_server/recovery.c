/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/recovery.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "common/memory.h"

#define SERVERS 3

static struct recovery_options example(enum parameter_server_mode mode, bool backup)
{
    return (struct recovery_options){
        .mode = mode, .server_count = SERVERS, .per_step = 2, .backup = backup, .chief_epoch = 1};
}

/* "123": lineages; 0: without a state. "111": who keeps a guest, the state of the one before it. */
static void stand(const char *lineages, const char *guests, struct server_standing standings[PS_SERVERS_MAX])
{
    for (unsigned i = 0; i < SERVERS; i++)
        standings[i] = (struct server_standing){.holds_state = lineages[i] != '0',
                                                .holds_guest = guests[i] != '0',
                                                .lineage = (uint32_t)(lineages[i] - '0'),
                                                .updates = 7 + i,
                                                .tickets = {.low = 14 + i}};
}

static enum recovery_kind choose_among(const char *lineages, const char *guests, enum parameter_server_mode mode,
                                       bool backup)
{
    const struct recovery_options options = example(mode, backup);
    struct server_standing standings[PS_SERVERS_MAX];
    stand(lineages, guests, standings);
    return recovery_choose(&options, standings);
}

static enum recovery_kind choose(const char *lineages, enum parameter_server_mode mode, bool backup)
{
    return choose_among(lineages, "111", mode, backup);
}

Test(recovery, follows_from_who_holds_what)
{
    cr_expect_eq(choose("111", PARAMETER_SERVER_ASYNC, false), RECOVERY_GO_ON);
    cr_expect_eq(choose("110", PARAMETER_SERVER_ASYNC, false), RECOVERY_SOME);
    cr_expect_eq(choose("110", PARAMETER_SERVER_SYNCHRONOUS, false), RECOVERY_ALL);
    cr_expect_eq(choose("110", PARAMETER_SERVER_SYNCHRONOUS, true), RECOVERY_FETCH);
    cr_expect_eq(choose("000", PARAMETER_SERVER_ASYNC, false), RECOVERY_ALL);
    cr_expect_eq(choose("121", PARAMETER_SERVER_ASYNC, false), RECOVERY_SOME, "what was left is no state");
}

/* Of servers 0 and 1, that are lost together, 1 has its backup in 2. The state of 0 was with 1. */
Test(recovery, what_a_backup_holds_is_fetched_whoever_else_is_lost)
{
    cr_expect_eq(choose_among("004", "001", PARAMETER_SERVER_ASYNC, true), RECOVERY_FETCH);
    cr_expect_eq(choose_among("004", "001", PARAMETER_SERVER_BOUNDED_STALENESS, true), RECOVERY_FETCH);
    cr_expect_eq(choose_among("044", "001", PARAMETER_SERVER_ASYNC, true), RECOVERY_SOME, "when it has it back");
    cr_expect_eq(choose_among("004", "000", PARAMETER_SERVER_ASYNC, true), RECOVERY_SOME);
    cr_expect_eq(choose_among("004", "001", PARAMETER_SERVER_SYNCHRONOUS, true), RECOVERY_ALL,
                 "all are at the same step, and so at that of the checkpoint");
    cr_expect_eq(choose_among("000", "001", PARAMETER_SERVER_ASYNC, true), RECOVERY_ALL,
                 "nothing is lost where all is done again");
}

/* Server 1 keeps what 0 had before all began anew, of which its chief told 2 alone. */
Test(recovery, what_a_backup_holds_of_before_is_not_fetched_again_and_again)
{
    cr_expect_eq(choose_among("004", "010", PARAMETER_SERVER_ASYNC, true), RECOVERY_FETCH);
    cr_expect_eq(choose_among("304", "010", PARAMETER_SERVER_ASYNC, true), RECOVERY_SOME);
    cr_expect_eq(choose_among("304", "011", PARAMETER_SERVER_ASYNC, true), RECOVERY_FETCH, "of 1, which is lost");
}

Test(recovery, nothing_is_fetched_that_no_backup_holds)
{
    SCOPED_FREE struct server_start *starts = memory_allocate(PS_SERVERS_MAX, sizeof *starts);
    const struct recovery_options options = example(PARAMETER_SERVER_ASYNC, true);
    struct server_standing standings[PS_SERVERS_MAX];
    struct dispatcher_plan fetches;
    stand("004", "001", standings);
    recovery_plan(&options, recovery_choose(&options, standings), standings, NULL, starts, &fetches);
    cr_expect(fetches.fetches_only && !starts[0].needed && starts[1].needed && !starts[2].needed);
    cr_expect_str_eq(starts[1].path, SERVER_START_BACKUP);
    recovery_plan_release(&fetches, starts);
}

static struct dispatcher_plan plan(const struct recovery_options *options, const char *lineages,
                                   struct server_start *starts)
{
    struct server_standing standings[PS_SERVERS_MAX];
    struct recovery_source source = {.path = memory_copy_string("here"), .step = 5};
    struct dispatcher_plan plan;
    stand(lineages, "111", standings);
    recovery_plan(options, recovery_choose(options, standings), standings, &source, starts, &plan);
    recovery_source_release(&source);
    return plan;
}

Test(recovery, what_goes_on_is_what_all_agree_on)
{
    SCOPED_FREE struct server_start *starts = memory_allocate(PS_SERVERS_MAX, sizeof *starts);
    struct recovery_options options = example(PARAMETER_SERVER_SYNCHRONOUS, false);
    struct dispatcher_plan agreed = plan(&options, "444", starts);
    cr_expect(agreed.lineage == 4 && agreed.step == 7 && agreed.finished.low == 14 && !agreed.keeps_tickets);
    recovery_plan_release(&agreed, starts);
    options.begun = true;
    agreed = plan(&options, "444", starts);
    cr_expect(agreed.keeps_tickets);
    recovery_plan_release(&agreed, starts);
}

/* Tickets 14 and 15 of two servers that go on, of which the third, which left, had acknowledged 13 alone. */
static bool keeps_what_some_have(bool begun, int64_t applied_since)
{
    SCOPED_FREE struct server_start *starts = memory_allocate(PS_SERVERS_MAX, sizeof *starts);
    struct recovery_options options = example(PARAMETER_SERVER_ASYNC, false);
    struct server_standing standings[PS_SERVERS_MAX];
    struct recovery_source source = {.path = memory_copy_string("here"), .step = 6, .server_count = SERVERS};
    struct dispatcher_plan plan;
    options.begun = begun;
    stand("440", "000", standings);
    for (unsigned i = 0; i < SERVERS; i++) {
        source.updates[i] = 7 + i;
        ticket_set_reset(&source.tickets[i], i == 2 ? 13 : 14 + i);
    }
    standings[1].updates += applied_since;
    standings[1].tickets.low += applied_since;
    recovery_plan(&options, recovery_choose(&options, standings), standings, &source, starts, &plan);
    cr_expect(plan.lineage == 4 && !starts[0].needed && starts[2].needed && starts[2].tickets.low == 13);
    bool keeps = plan.keeps_tickets;
    recovery_plan_release(&plan, starts);
    recovery_source_release(&source);
    return keeps;
}

Test(recovery, what_a_server_that_left_had_not_acknowledged_is_not_lost_to_the_next_chief)
{
    cr_expect(!keeps_what_some_have(false, 0));
    cr_expect(keeps_what_some_have(false, 1), "its successor's workers would have to do again what is done");
    cr_expect(keeps_what_some_have(true, 0), "this chief knows what was done");
}

/* A worker may outlive the chief and all servers, with an update on its way that none of them knows of. */
Test(recovery, no_two_rollbacks_have_the_same_lineage)
{
    SCOPED_FREE struct server_start *starts = memory_allocate(PS_SERVERS_MAX, sizeof *starts);
    struct recovery_options options = example(PARAMETER_SERVER_SYNCHRONOUS, false);
    uint32_t last = 0;
    for (unsigned i = 0; i < 20; i++) {
        struct dispatcher_plan rollback = plan(&options, "000", starts);
        cr_expect(rollback.lineage > last, "%u after %u", rollback.lineage, last);
        cr_expect(rollback.finished.low == 10 && rollback.step == 5);
        last = rollback.lineage;
        recovery_plan_release(&rollback, starts);
        options.begun = i % 3 > 0; /* else a chief that is new */
        options.chief_epoch += !options.begun;
        options.lineage = options.begun ? last : 0;
    }
}
