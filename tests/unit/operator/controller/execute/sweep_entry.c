/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/sweep_entry.h"

#include "tests/unit/operator/controller/sweep/sweep_scene.h"

Test(sweep_entry, plans_of_a_long_sweep_are_apart)
{
    struct sweep_entry *entry = sweep_entry_new("n/s", NULL);
    entry->planned_ms = 1000000;
    cr_expect_eq(sweep_entry_pace_ms(entry, 9, 1000000), 0);
    cr_expect_eq(sweep_entry_pace_ms(entry, 10000, 1000000), 1000);
    cr_expect_eq(sweep_entry_pace_ms(entry, 10000, 1000400), 600);
    cr_expect_eq(sweep_entry_pace_ms(entry, 10000, 1005000), 0);
    sweep_entry_free(entry);
}

static void keep(struct sweep_entry *entry, const char *name)
{
    struct trial_view trial = {.name = name, .sweep_uid = "u", .sweep_name = "s", .message = "", .succeeded = true};
    sweep_entry_keep_ended(entry, &trial);
}

Test(sweep_entry, forgets_the_trials_that_the_status_counts)
{
    struct sweep_entry *entry = sweep_entry_new("n/s", NULL);
    SCOPED_JSON *object = yaml_value(SWEEP_HEAD "  maxTrials: 4\n  parameters: [{path: a, values: [1]}]\n"
                                                "status: {results: [{state: Running}, {state: Failed}]}\n");
    struct training_sweep sweep = sweep_of(object);
    keep(entry, "s-0");
    keep(entry, "s-1");
    keep(entry, "s-2");
    sweep_entry_forget_counted(entry, &sweep);
    cr_assert_eq(entry->ended_count, 2);
    cr_expect_str_eq(entry->ended[0]->name, "s-0");
    cr_expect_str_eq(entry->ended[1]->name, "s-2");
    sweep_entry_free(entry);
    training_sweep_release(&sweep);
}
