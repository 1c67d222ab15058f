/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/leaving.h"

#include <criterion/criterion.h>

/* Any store will do: it is asked for nothing. */
static struct checkpoint_store *const a_store = (struct checkpoint_store *)&a_store;

static bool can_abandon(struct strategy_spec strategy, unsigned size, unsigned rank, struct checkpoint_store *store)
{
    const struct job_document job = {.strategy = strategy, .checkpoint.save_on_preemption = true};
    const struct trainer trainer = {.job = &job,
                                    .crew = {.size = size, .rank = rank},
                                    .files.store = rank == 0 ? store : NULL,
                                    .files.parts = rank == 0 ? NULL : (struct part_writer *)store};
    return leaving_can_abandon(&trainer);
}

static const struct strategy_spec mirrored = {.type = STRATEGY_MULTI_WORKER_MIRRORED};

Test(leaving, a_lone_worker_abandons_what_it_can_save)
{
    static const enum strategy_type types[] = {STRATEGY_ONE_DEVICE, STRATEGY_MIRRORED, STRATEGY_CENTRAL_STORAGE,
                                               STRATEGY_MULTI_WORKER_MIRRORED, STRATEGY_PIPELINE};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        cr_assert(can_abandon((struct strategy_spec){.type = types[i]}, 1, 0, a_store));
        cr_assert_not(can_abandon((struct strategy_spec){.type = types[i]}, 1, 0, NULL));
    }
}

Test(leaving, each_member_of_a_crew_with_equal_replicas_may)
{
    cr_assert(can_abandon(mirrored, 3, 0, a_store));
    cr_assert_not(can_abandon(mirrored, 3, 0, NULL), "a chief that cannot save has nothing to win");
    cr_assert(can_abandon(mirrored, 3, 2, NULL), "the others hold what it holds");
}

Test(leaving, each_member_that_can_save_of_a_crew_with_a_sharded_state_may)
{
    const struct strategy_spec sharded = {.type = STRATEGY_MULTI_WORKER_MIRRORED, .sharded_optimizer = true},
                               pipeline = {.type = STRATEGY_PIPELINE};
    for (unsigned rank = 0; rank < 2; rank++) {
        cr_assert(can_abandon(sharded, 2, rank, a_store));
        cr_assert(can_abandon(pipeline, 2, rank, a_store));
        cr_assert_not(can_abandon(sharded, 2, rank, NULL), "what it has is nowhere else");
        cr_assert_not(can_abandon(pipeline, 2, rank, NULL));
    }
}

static bool can_leave_forming(struct strategy_spec strategy, unsigned rank, bool formed)
{
    const struct job_document job = {.strategy = strategy};
    const struct trainer trainer = {.job = &job, .crew = {.size = 2, .rank = rank}};
    return leaving_can_leave_forming(&trainer, formed);
}

Test(leaving, a_forming_crew_is_left_only_by_members_that_lose_nothing)
{
    const struct strategy_spec pipeline = {.type = STRATEGY_PIPELINE};
    cr_expect(can_leave_forming(mirrored, 1, true));
    cr_expect(can_leave_forming(mirrored, 0, false), "it has not begun");
    cr_expect_not(can_leave_forming(mirrored, 0, true), "it may be the only one with what it holds");
    cr_expect(can_leave_forming(pipeline, 1, false));
    cr_expect_not(can_leave_forming(pipeline, 1, true));
}

Test(leaving, servers_crews_see_to_it_themselves)
{
    cr_assert_not(can_abandon((struct strategy_spec){.type = STRATEGY_PARAMETER_SERVER}, 2, 0, a_store));
}
