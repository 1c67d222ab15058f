/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/leaving.h"

#include <criterion/criterion.h>

/* Any store will do: it is asked for nothing. */
static struct checkpoint_store *const a_store = (struct checkpoint_store *)&a_store;

static bool can_abandon(struct strategy_spec strategy, unsigned size, unsigned rank, struct checkpoint_store *store)
{
    const struct job_document job = {.strategy = strategy, .checkpoint.save_on_preemption = true};
    const struct trainer trainer = {.job = &job, .crew = {.size = size, .rank = rank}, .store = store};
    return leaving_can_abandon(&trainer);
}

static const struct strategy_spec mirrored = {.type = STRATEGY_MULTI_WORKER_MIRRORED};

Test(leaving, a_lone_worker_abandons_what_it_can_save)
{
    static const enum strategy_type types[] = {STRATEGY_ONE_DEVICE, STRATEGY_MIRRORED, STRATEGY_CENTRAL_STORAGE,
                                               STRATEGY_MULTI_WORKER_MIRRORED};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        cr_assert(can_abandon((struct strategy_spec){.type = types[i]}, 1, 0, a_store));
        cr_assert_not(can_abandon((struct strategy_spec){.type = types[i]}, 1, 0, NULL));
    }
}

Test(leaving, of_a_crew_whose_replicas_are_equal_each_may)
{
    cr_assert(can_abandon(mirrored, 3, 0, a_store));
    cr_assert_not(can_abandon(mirrored, 3, 0, NULL), "a chief that cannot save has nothing to win");
    cr_assert(can_abandon(mirrored, 3, 2, NULL), "the others hold what it holds");
}

Test(leaving, whose_state_is_nowhere_whole_between_boundaries_never)
{
    struct strategy_spec local = mirrored, sharded = mirrored;
    local.local_steps = 4;
    sharded.sharded_optimizer = true;
    cr_assert_not(can_abandon(local, 2, 0, a_store));
    cr_assert_not(can_abandon(sharded, 2, 1, a_store));
    cr_assert_not(can_abandon((struct strategy_spec){.type = STRATEGY_PIPELINE}, 1, 0, a_store));
    cr_assert_not(can_abandon((struct strategy_spec){.type = STRATEGY_PEER_TO_PEER}, 2, 0, a_store));
    cr_assert_not(can_abandon((struct strategy_spec){.type = STRATEGY_PARAMETER_SERVER}, 2, 0, a_store));
}
