/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/saving.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/unit/worker/checkpoint/held_disk.h"
#include "worker/checkpoint/file.h"
#include "worker/checkpoint/part.h"
#include "worker/strategy/strategy_table.h"

static unsigned two_writers(const struct strategy *strategy)
{
    (void)strategy;
    return 2;
}

static int fail_to_average(struct strategy *strategy, struct error *error)
{
    (void)strategy;
    return error_set(error, ERROR_UNAVAILABLE, "nobody answers");
}

static const struct strategy_crew_operations two_write = {.writers = two_writers};
static const struct strategy_loose_operations fails_to_average = {.average_begin = fail_to_average};
static const struct strategy_operations shared_operations = {.crew = &two_write}, plain_operations = {0},
                                        failing_operations = {.crew = &two_write, .loose = &fails_to_average};

Test(saving, a_rank_agrees_to_a_save_once_its_last_part_is_written, .timeout = 60)
{
    char directory[] = "/tmp/coxswain-saving-XXXXXX";
    cr_assert(mkdtemp(directory));
    static const float values[] = {1, 2, 3};
    const struct safetensors_tensor tensor = {
        .name = "a", .dtype = SAFETENSORS_F32, .shape = {3}, .rank = 1, .data = values, .bytes = sizeof values};
    const struct checkpoint_part_key key = {1, 2, 3, 10, 1};
    struct strategy strategy = {.operations = &shared_operations, .world = {.rank = 1, .size = 2}};
    const struct trainer trainer = {
        .crew = {.size = 2, .rank = 1}, .strategy = &strategy, .files.parts = part_writer_new(directory, NULL)};
    cr_expect_eq(saving_votes(&trainer), STRATEGY_VOTE_CHECKPOINT);
    held_disk_hold();
    cr_assert_eq(part_writer_save(trainer.files.parts, &key, &tensor, 1, NULL), 0);
    cr_expect_eq(saving_votes(&trainer), 0);
    held_disk_let_go();
    cr_assert_eq(part_writer_wait(trainer.files.parts, NULL), 0);
    cr_expect_eq(saving_votes(&trainer), STRATEGY_VOTE_CHECKPOINT);
    held_disk_end();
    part_writer_free(trainer.files.parts);
    file_remove_directory(directory, NULL);
}

static ssize_t write_to_full_disk(int descriptor, const void *bytes, size_t length)
{
    (void)descriptor, (void)bytes, (void)length;
    errno = ENOSPC;
    return -1;
}

/* A rank that leaves reports last whether its part is saved. */
Test(saving, a_rank_whose_part_could_not_be_written_has_not_saved_it, .timeout = 60)
{
    char directory[] = "/tmp/coxswain-saving-XXXXXX";
    cr_assert(mkdtemp(directory));
    static const float values[] = {1, 2, 3};
    const struct safetensors_tensor tensor = {
        .name = "a", .dtype = SAFETENSORS_F32, .shape = {3}, .rank = 1, .data = values, .bytes = sizeof values};
    const struct checkpoint_part_key key = {.rank = 1};
    struct strategy strategy = {.operations = &shared_operations, .world = {.rank = 1, .size = 2}};
    struct trainer trainer = {
        .crew = {.size = 2, .rank = 1}, .strategy = &strategy, .files.parts = part_writer_new(directory, NULL)};
    struct error error = ERROR_INIT;
    file_calls.write = write_to_full_disk;
    cr_assert_eq(part_writer_save(trainer.files.parts, &key, &tensor, 1, NULL), 0);
    cr_expect_eq(saving_finish(&trainer, &error), -1);
    cr_expect_eq(error.kind, ERROR_NO_SPACE, "%s", error.message);
    file_calls.write = write;
    part_writer_free(trainer.files.parts);
    file_remove_directory(directory, NULL);
}

/* A short run that is killed has a checkpoint. */
Test(saving, the_first_save_by_time_comes_early)
{
    const int64_t second = 1000000000, now = clock_monotonic_ns();
    const struct checkpoint_spec minutely = {.every_seconds = 60}, often = {.every_seconds = 5},
                                 by_steps = {.every_seconds = FIELD_UNSET};
    cr_expect_geq(saving_begun_ns(&minutely), now - 50 * second);
    cr_expect_lt(saving_begun_ns(&minutely), now - 40 * second);
    cr_expect_geq(saving_begun_ns(&often), now);
    cr_expect_geq(saving_begun_ns(&by_steps), now);
}

Test(saving, where_the_chief_writes_alone_nobody_is_asked)
{
    struct strategy strategy = {.operations = &plain_operations, .world = {.rank = 1, .size = 2}};
    const struct trainer trainer = {.crew = {.size = 2, .rank = 1}, .strategy = &strategy};
    cr_expect_eq(saving_votes(&trainer), 0);
}

/* The next wait would be told of with the time of this one. */
Test(saving, a_wait_for_a_rank_ends_with_the_save_that_all_agree_on_and_with_the_crew, .timeout = 60)
{
    char directory[] = "/tmp/coxswain-saving-XXXXXX";
    cr_assert(mkdtemp(directory));
    struct strategy strategy = {.operations = &failing_operations, .world = {.size = 2}};
    struct trainer trainer = {.crew = {.size = 2}, .strategy = &strategy, .files.store_begun = true};
    const struct checkpoint_options options = {.directory = directory, .job_uid = "", .keep = 1};
    const struct report_options report = {.job_uid = "", .role = "worker", .http_port = -1, .unit = "examples"};
    const struct strategy_result held = {.checkpoint_held_by = 1}, agreed = {.checkpoint = true};
    cr_assert_eq(checkpoint_store_open(&options, &trainer.files.store, NULL), 0);
    cr_assert_eq(report_open(&report, &trainer.report, NULL), 0);
    cr_assert_eq(saving_consider(&trainer, &held, NULL), 0);
    cr_expect_neq(trainer.saves.held_ns, 0);
    cr_assert_eq(saving_consider(&trainer, &agreed, NULL), 0);
    cr_expect_eq(trainer.saves.held_ns, 0, "a save that failed");
    cr_assert_eq(saving_consider(&trainer, &held, NULL), 0);
    cr_expect_neq(trainer.saves.held_ns, 0);
    cr_assert_eq(saving_begin(&trainer, NULL), 0);
    cr_expect_eq(trainer.saves.held_ns, 0, "a crew that formed anew");
    report_free(trainer.report);
    checkpoint_store_free(trainer.files.store);
    file_remove_directory(directory, NULL);
}

/* A rank that was lost while step 20 was saved has brought the crew back to step 10. */
Test(saving, a_step_that_is_reached_again_is_saved_again, .timeout = 60)
{
    char directory[] = "/tmp/coxswain-saving-XXXXXX";
    cr_assert(mkdtemp(directory));
    struct strategy strategy = {.operations = &shared_operations, .world = {.size = 2}};
    const struct job_document job = {.checkpoint = {.every_steps = 10, .every_seconds = FIELD_UNSET}};
    struct trainer trainer = {
        .job = &job, .crew = {.size = 2}, .strategy = &strategy, .files.store_begun = true, .saves.step = 20};
    const struct checkpoint_options options = {.directory = directory, .job_uid = "", .keep = 1};
    cr_assert_eq(checkpoint_store_open(&options, &trainer.files.store, NULL), 0);
    trainer.state.progress.step = 10;
    cr_assert_eq(saving_begin(&trainer, NULL), 0);
    trainer.state.progress.step = 19;
    cr_expect_eq(saving_votes(&trainer), STRATEGY_VOTE_CHECKPOINT);
    checkpoint_store_free(trainer.files.store);
    file_remove_directory(directory, NULL);
}
