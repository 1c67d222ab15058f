/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/recovery.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "common/memory.h"

#define SERVERS 3

static struct recovery_options example(enum parameter_server_mode mode)
{
    return (struct recovery_options){.mode = mode, .server_count = SERVERS, .per_step = 2, .chief_incarnation = 1};
}

/* "123": lineages; 0: without a state. */
static void stand(const char *lineages, struct server_standing standings[PS_SERVERS_MAX])
{
    for (unsigned i = 0; i < SERVERS; i++)
        standings[i] = (struct server_standing){.holds_state = lineages[i] != '0',
                                                .lineage = (uint32_t)(lineages[i] - '0'),
                                                .updates = 7 + i,
                                                .tickets = {.low = 14 + i}};
}

static enum recovery_kind choose(const char *lineages, enum parameter_server_mode mode)
{
    const struct recovery_options options = example(mode);
    struct server_standing standings[PS_SERVERS_MAX];
    stand(lineages, standings);
    return recovery_choose(&options, standings);
}

Test(recovery, follows_from_what_the_servers_hold)
{
    cr_expect_eq(choose("111", PARAMETER_SERVER_ASYNC), RECOVERY_GO_ON);
    cr_expect_eq(choose("110", PARAMETER_SERVER_ASYNC), RECOVERY_SOME);
    cr_expect_eq(choose("110", PARAMETER_SERVER_SYNCHRONOUS), RECOVERY_ALL);
    cr_expect_eq(choose("000", PARAMETER_SERVER_ASYNC), RECOVERY_ALL);
    cr_expect_eq(choose("121", PARAMETER_SERVER_ASYNC), RECOVERY_SOME, "what was left is no state");
}

static struct dispatcher_plan plan(const struct recovery_options *options, const char *lineages,
                                   struct server_start *starts)
{
    struct server_standing standings[PS_SERVERS_MAX];
    struct recovery_source source = {.path = memory_copy_string("here"), .step = 5};
    struct dispatcher_plan plan;
    stand(lineages, standings);
    recovery_plan(options, recovery_choose(options, standings), standings, &source, starts, &plan);
    recovery_source_release(&source);
    return plan;
}

Test(recovery, what_goes_on_is_what_all_agree_on)
{
    SCOPED_FREE struct server_start *starts = memory_allocate(PS_SERVERS_MAX, sizeof *starts);
    struct recovery_options options = example(PARAMETER_SERVER_SYNCHRONOUS);
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
    struct recovery_options options = example(PARAMETER_SERVER_ASYNC);
    struct server_standing standings[PS_SERVERS_MAX];
    struct recovery_source source = {.path = memory_copy_string("here"), .step = 6, .server_count = SERVERS};
    struct dispatcher_plan plan;
    options.begun = begun;
    stand("440", standings);
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
    struct recovery_options options = example(PARAMETER_SERVER_SYNCHRONOUS);
    uint32_t last = 0;
    for (unsigned i = 0; i < 20; i++) {
        struct dispatcher_plan rollback = plan(&options, "000", starts);
        cr_expect(rollback.lineage > last, "%u after %u", rollback.lineage, last);
        cr_expect(rollback.finished.low == 10 && rollback.step == 5);
        last = rollback.lineage;
        recovery_plan_release(&rollback, starts);
        options.begun = i % 3 > 0; /* else a chief that is new */
        options.chief_incarnation += !options.begun;
        options.lineage = options.begun ? last : 0;
    }
}
