/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/sick_node.h"

#include <criterion/criterion.h>

#define WINDOW_MS 100
#define NOW_MS 1000

static struct sick_failure on(const char *node, const char *job, int64_t at_ms)
{
    return (struct sick_failure){.uid = (char *)job,
                                 .program = (char *)job,
                                 .job = (char *)job,
                                 .node = (char *)node,
                                 .reason = (char *)"",
                                 .at_ms = at_ms};
}

static struct sick_node judge(const struct sick_failure *list, size_t count, const char *node, int64_t since_ms)
{
    struct sick_failures failures = {list, count, WINDOW_MS, NOW_MS};
    return sick_node_count(&failures, node, since_ms);
}

Test(sick_node, failures_of_two_jobs_within_the_window_make_a_node_sick)
{
    const struct sick_failure list[] = {on("n", "a", 950), on("n", "b", 940), on("m", "a", 990), on("n", "a", 960)};
    struct sick_node sick = judge(list, 4, "n", 0);
    cr_expect(sick.failures == 3 && sick.jobs == 2);
    cr_expect_eq(sick.last, &list[3]);
    cr_expect(sick_node_is_sick(&sick));
    sick = judge(list, 3, "n", 0);
    cr_expect_not(sick_node_is_sick(&sick), "two failures");
    sick = judge(list, 4, "m", 0);
    cr_expect(sick.failures == 1 && !sick_node_is_sick(&sick));
}

Test(sick_node, one_job_cannot_make_a_node_sick)
{
    struct sick_failure list[32];
    for (int i = 0; i < 32; i++)
        list[i] = on("n", "a", 990);
    struct sick_node sick = judge(list, 32, "n", 0);
    cr_expect(sick.failures == 32 && sick.jobs == 1 && !sick_node_is_sick(&sick));
}

Test(sick_node, the_trials_of_a_sweep_count_as_one_job)
{
    struct sick_failure list[] = {on("n", "a-0", 990), on("n", "a-1", 980), on("n", "a-2", 970), on("n", "b", 960)};
    for (int i = 0; i < 3; i++)
        list[i].program = (char *)"a";
    struct sick_node sick = judge(list, 3, "n", 0);
    cr_expect(sick.failures == 3 && sick.jobs == 1 && !sick_node_is_sick(&sick));
    sick = judge(list, 4, "n", 0);
    cr_expect(sick.jobs == 2 && sick_node_is_sick(&sick));
}

/* A node that restarts, or is cut off, once. */
Test(sick_node, one_outage_makes_no_node_sick_however_many_jobs_it_ends)
{
    struct sick_failure list[] = {on("n", "a", 500000), on("n", "b", 500001), on("n", "c", 500000),
                                  on("m", "a", 499999), on("n", "a", 400000), on("n", "a", 300000)};
    struct sick_failures failures = {list, 4, 1000000, 600000};
    for (int i = 0; i < 6; i++)
        list[i].reason = (char *)"the node was lost (pod p)";
    struct sick_node sick = sick_node_count(&failures, "n", 0);
    cr_expect(sick.failures == 1 && sick.jobs == 3 && !sick_node_is_sick(&sick), "%u of %u", sick.failures, sick.jobs);
    failures.count = 6;
    sick = sick_node_count(&failures, "n", 0);
    cr_expect(sick.failures == 3 && sick_node_is_sick(&sick), "three outages: %u", sick.failures);
    for (int i = 0; i < 3; i++)
        list[i].reason = (char *)"a device failed (pod p)";
    failures.count = 4;
    cr_expect_eq(sick_node_count(&failures, "n", 0).failures, 3, "devices that fail are no outage");
}

Test(sick_node, failures_that_are_old_or_older_than_the_taint_or_in_the_future_count_not)
{
    const struct sick_failure list[] = {on("n", "a", 900), on("n", "b", 901), on("n", "c", 950), on("n", "d", 1001)};
    cr_expect_eq(judge(list, 4, "n", 0).failures, 2);
    cr_expect_eq(judge(list, 4, "n", 901).failures, 1);
    cr_expect_eq(judge(list, 4, "n", 950).failures, 0);
}

Test(sick_node, a_taint_ends_after_its_window)
{
    struct sick_failures failures = {.window_ms = WINDOW_MS, .now_ms = NOW_MS};
    cr_expect(sick_node_is_over(&failures, 900, WINDOW_MS));
    cr_expect_not(sick_node_is_over(&failures, 901, WINDOW_MS));
    cr_expect_not(sick_node_is_over(&failures, 900, WINDOW_MS + 1), "set by an operator with another window");
    cr_expect_not(sick_node_is_over(&failures, 1050, WINDOW_MS), "a clock that goes a little ahead");
    cr_expect(sick_node_is_over(&failures, 1101, WINDOW_MS), "no clock of ours");
}

Test(sick_node, a_tenth_of_the_nodes_but_at_least_one)
{
    static const size_t cases[][2] = {{0, 1}, {3, 1}, {19, 1}, {20, 2}, {1000, 100}};
    for (size_t i = 0; i < 5; i++)
        cr_expect_eq(sick_nodes_most(cases[i][0]), cases[i][1]);
}
