/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/job_entry.h"

#include <criterion/criterion.h>

static struct job_entry *entry;

static void init(void)
{
    entry = job_entry_new("n/a");
}

static void fini(void)
{
    job_entry_free(entry);
}

TestSuite(job_entry, .init = init, .fini = fini);

Test(job_entry, a_refusal_of_an_earlier_job_is_not_the_next_ones)
{
    job_entry_set_job(entry, "first");
    job_entry_set_job(entry, NULL);
    job_entry_set_obstacle(entry, "first", OBSTACLE_REJECTED, "the answer came late", 0);
    cr_assert_eq(entry->obstacle, OBSTACLE_NONE);
    job_entry_set_job(entry, "second");
    job_entry_set_obstacle(entry, "first", OBSTACLE_REJECTED, "the answer came later still", 0);
    cr_assert_eq(entry->obstacle, OBSTACLE_NONE);
    job_entry_set_obstacle(entry, "second", OBSTACLE_QUOTA, "full", 0);
    cr_assert_eq(entry->obstacle, OBSTACLE_QUOTA);
}

Test(job_entry, another_job_of_the_name_starts_without_memories)
{
    job_entry_set_job(entry, "first");
    job_entry_set_obstacle(entry, "first", OBSTACLE_QUOTA, "full", 0);
    entry->counts_since_ms = entry->behind_since_ms = 7;
    job_entry_set_job(entry, "first");
    cr_assert_eq(entry->obstacle, OBSTACLE_QUOTA);
    job_entry_set_job(entry, "second");
    cr_assert_eq(entry->obstacle, OBSTACLE_NONE);
    cr_assert_eq(entry->counts_since_ms, FIELD_UNSET);
    cr_assert_eq(entry->behind_since_ms, FIELD_UNSET);
}

Test(job_entry, what_was_noted_moves_with_a_clock_that_is_set)
{
    job_entry_set_job(entry, "first");
    entry->counts_since_ms = 5000;
    entry->poll_ms = 6000;
    entry->obstacle_retry_ms = 7000;
    job_entry_clock_set(entry, 100, true);
    job_entry_clock_set(entry, -1000, false);
    cr_assert_eq(entry->counts_since_ms, 4100);
    cr_assert_eq(entry->poll_ms, 5100);
    cr_assert_eq(entry->obstacle_retry_ms, 6100);
    cr_assert_eq(entry->behind_since_ms, FIELD_UNSET);
    cr_assert_eq(entry->start_moved_ms, 100, "only what it was active through");
    job_entry_set_job(entry, "second");
    cr_assert_eq(entry->start_moved_ms, 0);
}

Test(job_entry, the_same_refusal_again_waits_longer)
{
    job_entry_set_job(entry, "first");
    job_entry_set_obstacle(entry, "first", OBSTACLE_QUOTA, "full", 0);
    int64_t first_ms = entry->obstacle_retry_ms;
    job_entry_set_obstacle(entry, "first", OBSTACLE_QUOTA, "full", 0);
    cr_assert_eq(entry->obstacle_retry_ms, 2 * first_ms);
}

Test(job_entry, an_outage_is_never_waited_for_long)
{
    job_entry_set_job(entry, "first");
    for (int i = 0; i < 20; i++)
        job_entry_set_obstacle(entry, "first", OBSTACLE_OUTAGE, "no answer", 0);
    cr_assert_leq(entry->obstacle_retry_ms, 10000);
}

static struct pod_record *pod_of(const char *job_uid, int64_t index, int64_t epoch)
{
    SCOPED_BUFFER conditions;
    SCOPED_JSON *nothing = json_new_object();
    struct pod_view view;
    pod_view_read(nothing, &view, &conditions);
    view.job_uid = job_uid;
    view.role = ROLE_WORKER;
    view.index = index;
    view.epoch = epoch;
    view.member = view.current = true;
    return pod_record_new(&view);
}

Test(job_entry, what_vanished_is_remembered_for_the_newest_epoch)
{
    SCOPED_FREE struct pod_record *old = pod_of("first", 0, 1), *newer = pod_of("first", 1, 2),
                                  *other = pod_of("another", 2, 3);
    job_entry_set_job(entry, "first");
    job_entry_add_pod(entry, old);
    job_entry_add_pod(entry, newer);
    job_entry_add_pod(entry, other);
    job_entry_remove_pod(entry, newer);
    job_entry_remove_pod(entry, old);
    job_entry_remove_pod(entry, other);
    cr_assert_eq(entry->gone_count, 1);
    cr_assert_eq(entry->gone_epoch, 2);
    cr_assert_eq(entry->gone[0].index, 1);
    job_entry_set_job(entry, "second");
    cr_assert_eq(entry->gone_count, 0);
}
