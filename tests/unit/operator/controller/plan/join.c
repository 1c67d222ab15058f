/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/join.h"

#include <criterion/criterion.h>

#include "tests/unit/operator/controller/plan/scene.h"

SCENE_SUITE(join)
{
    scene_init_running(&scene, 2);
}

static const struct strangers_input flood = {
    .reported = true, .members_missing = true, .per_minute = 4872, .from = "10.1.2.3", .why = "data port: it is mute"};

Test(join, strangers_at_the_ports_are_named_while_members_are_missing)
{
    scene.input.strangers = flood;
    const struct plan *plan = scene_plan(&scene);
    cr_assert_str_eq(scene_reason(&scene, CONDITION_JOIN_BLOCKED, CONDITION_TRUE), "UnauthenticatedConnections");
    cr_assert_str_eq(plan->status.conditions[CONDITION_JOIN_BLOCKED].message,
                     "members are missing, and the chief refuses more than 1000 connections a minute that do not prove "
                     "that they belong to the job, most of them from 10.1.2.3 (data port: it is mute): let only the "
                     "job's pods reach its ports, with a NetworkPolicy");
    cr_assert(plan->write_status && plan->event_count == 1 && plan->events[0].warning);
    scene_accept(&scene);
    scene.input.strangers.per_minute = 5311;
    plan = scene_plan(&scene);
    cr_assert(plan->event_count == 0 && !plan->write_status, "another figure of the same size is no news");
    scene.input.strangers = (struct strangers_input){.reported = false};
    expect_plan("JoinBlocked:True=UnauthenticatedConnections (a chief that cannot be asked takes nothing back)");
    scene.input.strangers = (struct strangers_input){.reported = true, .per_minute = 4872};
    expect_plan("JoinBlocked:False=Joined");
}

Test(join, few_strangers_or_none_missing_is_no_condition)
{
    scene.input.strangers = flood;
    scene.input.strangers.per_minute = 60;
    scene_plan(&scene);
    cr_assert_eq(scene.plan.status.conditions[CONDITION_JOIN_BLOCKED].status, CONDITION_ABSENT);
    scene.input.strangers = flood;
    scene.input.strangers.members_missing = false;
    scene_plan(&scene);
    cr_assert_eq(scene.plan.status.conditions[CONDITION_JOIN_BLOCKED].status, CONDITION_ABSENT);
}
