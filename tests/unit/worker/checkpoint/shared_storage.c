/* SPDX-License-Identifier: Apache-2.0
 *
 * A checkpoint directory into which somebody else has put links and FIFOs.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/memory.h"
#include "common/scope.h"
#include "tests/unit/worker/checkpoint/directory.h"
#include "worker/checkpoint/file.h"
#include "worker/report/tensorboard.h"

/* A wait for a FIFO's other end would never be over. */
TestSuite(shared_storage, .timeout = 60);

/* Another's directory with one file of a name that a checkpoint's shard has; free() it. */
static char *victim_of(const char *directory)
{
    char *victim = file_path_join(directory, "victim");
    SCOPED_FREE char *file = file_path_join(victim, "rank-00000.safetensors");
    cr_assert_eq(mkdir(victim, 0755), 0);
    cr_assert_eq(file_write(file, "precious", 8, NULL), 0);
    return victim;
}

static void expect_unharmed(const char *victim)
{
    SCOPED_FREE char *file = file_path_join(victim, "rank-00000.safetensors");
    SCOPED_BUFFER text = BUFFER_INIT(100);
    cr_expect(buffer_read_file(&text, file, NULL) == 0);
    cr_expect_str_eq(buffer_text(&text), "precious");
}

static void save_steps(const char *directory, int64_t first, int64_t second)
{
    struct checkpoint_store *store = test_open(directory, 1);
    struct error error = ERROR_INIT;
    cr_assert_eq(checkpoint_store_begin(store, false, &error), 0, "%s", error.message);
    cr_assert_eq(test_save(store, first, &error), 0, "%s", error.message);
    cr_assert_eq(test_save(store, second, &error), 0, "%s", error.message);
    checkpoint_store_free(store);
}

/* Each is a name by which a chief deletes, writes or renames a directory. */
Test(shared_storage, links_named_like_drafts_cost_nobody_their_files)
{
    static const char *const names[] = {".saving-step-00000020.attempt-1.incarnation-2", ".saving-step-00000005",
                                        ".replaced-step-00000020.attempt-1.incarnation-1",
                                        ".part-1.1.1-step-00000020-rank-1"};
    const char *directory = test_directory();
    SCOPED_FREE char *victim = victim_of(directory);
    SCOPED_FREE char *job = file_path_join(directory, "job");
    save_steps(job, 10, 20);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        SCOPED_FREE char *link = file_path_join(job, names[i]);
        cr_assert_eq(symlink(victim, link), 0);
    }
    struct checkpoint_store *store = test_open(job, 2);
    struct error error = ERROR_INIT;
    struct checkpoint_image image;
    cr_assert_eq(checkpoint_restore(store, NULL, NULL, &image, &error), 0, "%s", error.message);
    checkpoint_image_release(&image);
    cr_assert_eq(checkpoint_store_begin(store, false, &error), 0, "%s", error.message);
    cr_expect_eq(test_save(store, 30, &error), 0, "%s", error.message);
    checkpoint_store_free(store);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        SCOPED_FREE char *link = file_path_join(job, names[i]);
        cr_expect_not(file_exists(link), "%s is still there", names[i]);
    }
    expect_unharmed(victim);
}

/* The link comes after the chief has looked. */
Test(shared_storage, nothing_is_written_or_removed_below_a_link)
{
    const char *directory = test_directory();
    SCOPED_FREE char *victim = victim_of(directory);
    SCOPED_FREE char *saving = file_path_join(directory, ".saving-step-00000020");
    SCOPED_FREE char *shard = file_path_join(saving, "rank-00000.safetensors");
    SCOPED_FREE char *other = file_path_join(directory, "other");
    struct error error = ERROR_INIT;
    cr_assert_eq(symlink(victim, saving), 0);
    cr_expect_eq(file_write(shard, "evil", 4, &error), -1);
    cr_expect(error.kind == ERROR_CORRUPT && strstr(error.message, shard) && strstr(error.message, "symbolic link"),
              "%s", error.message);
    cr_expect_eq(file_replace(shard, "evil", 4, NULL), -1);
    cr_expect_eq(file_write_exclusive(shard, "evil", 4, NULL), -1);
    cr_expect_eq(file_calls.unlink(shard), -1);
    cr_expect_eq(file_calls.rename(shard, other), -1);
    cr_expect_eq(file_calls.link(shard, other), -1);
    cr_expect_eq(file_calls.exchange(shard, victim), -1);
    cr_expect_eq(file_calls.mkdir(shard, 0755), -1);
    cr_expect_eq(file_sync_directory(saving, NULL), -1);
    expect_unharmed(victim);
}

Test(shared_storage, a_link_in_a_files_place_is_replaced_and_not_written_through)
{
    const char *directory = test_directory();
    SCOPED_FREE char *victim = victim_of(directory);
    SCOPED_FREE char *target = file_path_join(victim, "rank-00000.safetensors");
    SCOPED_FREE char *link = file_path_join(directory, "manifest.json");
    struct error error = ERROR_INIT;
    cr_assert_eq(symlink(target, link), 0);
    cr_expect_eq(file_write(link, "ours", 4, &error), 0, "%s", error.message);
    expect_unharmed(victim);
    cr_assert_eq(unlink(link), 0);
    cr_assert_eq(mkfifo(link, 0600), 0);
    cr_expect_eq(file_write(link, "ours", 4, &error), 0, "%s", error.message);
}

/* Replaces the newest checkpoint, of step 20, by something else; the chief must continue from step 10. */
static void check_passed_over(const char *entry, void (*plant)(const char *path, const char *victim))
{
    const char *directory = test_directory();
    SCOPED_FREE char *victim = victim_of(directory);
    SCOPED_FREE char *job = file_path_join(directory, "job");
    save_steps(job, 10, 20);
    SCOPED_FREE char *path = memory_format("%s/step-00000020.attempt-1.incarnation-1%s", job, entry);
    SCOPED_FREE char *moved = memory_format("%s/moved", directory);
    cr_assert_eq(rename(path, moved), 0);
    plant(path, *entry ? moved : victim);
    cr_expect_eq(test_restored_step(job), 10, "%s", entry);
    expect_unharmed(victim);
}

static void plant_link(const char *path, const char *target)
{
    cr_assert_eq(symlink(target, path), 0);
}

static void plant_fifo(const char *path, const char *target)
{
    (void)target;
    cr_assert_eq(mkfifo(path, 0600), 0);
}

static void plant_directory(const char *path, const char *target)
{
    (void)target;
    cr_assert_eq(mkdir(path, 0700), 0);
}

Test(shared_storage, links_and_fifos_in_a_checkpoints_place_are_passed_over)
{
    static const char *const entries[] = {"", "/manifest.json", "/rank-00000.safetensors"};
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        check_passed_over(entries[i], plant_link);
        check_passed_over(entries[i], plant_fifo);
        check_passed_over(entries[i], plant_directory);
    }
}

Test(shared_storage, an_incarnation_record_that_is_no_file_counts_as_damaged)
{
    const char *directory = test_directory();
    SCOPED_FREE char *record = file_path_join(directory, "incarnation-1.json");
    struct incarnation_record read = {0};
    struct error error = ERROR_INIT;
    cr_assert_eq(mkfifo(record, 0600), 0);
    cr_expect_eq(incarnation_record_read(directory, 1, &read, &error), 0, "%s", error.message);
    cr_expect_eq(read.state, INCARNATION_DAMAGED);
    cr_assert_eq(unlink(record), 0);
    cr_assert_eq(symlink("/dev/zero", record), 0);
    cr_expect_eq(incarnation_record_read(directory, 1, &read, &error), 0, "%s", error.message);
    cr_expect_eq(read.state, INCARNATION_DAMAGED);
}

Test(shared_storage, the_directory_that_a_user_names_may_be_a_link)
{
    const char *directory = test_directory();
    SCOPED_FREE char *disk = file_path_join(directory, "disk");
    SCOPED_FREE char *link = file_path_join(directory, "link");
    cr_assert_eq(mkdir(disk, 0755), 0);
    cr_assert_eq(symlink(disk, link), 0);
    SCOPED_FREE char *job = file_path_join(link, "job");
    save_steps(job, 10, 20);
    save_steps(link, 10, 20);
    cr_expect_eq(test_restored_step(job), 20);
    cr_expect_eq(test_restored_step(link), 20);
}

Test(shared_storage, no_events_are_written_below_a_linked_tensorboard)
{
    const char *directory = test_directory();
    SCOPED_FREE char *victim = victim_of(directory);
    SCOPED_FREE char *board = file_path_join(directory, "tensorboard");
    SCOPED_FREE char *evaluators = file_path_join(board, "evaluator");
    struct tensorboard *opened;
    cr_assert_eq(symlink(victim, board), 0);
    cr_expect_eq(tensorboard_open(board, &opened, NULL), -1);
    cr_expect_eq(tensorboard_open(evaluators, &opened, NULL), -1);
    cr_expect_eq(rmdir(evaluators), -1);
}

static char *write_tensors(const char *directory)
{
    static const float values[TEST_ELEMENTS] = {1};
    const struct safetensors_tensor tensor = {.name = "weight",
                                              .dtype = SAFETENSORS_F32,
                                              .shape = {TEST_ELEMENTS},
                                              .rank = 1,
                                              .data = values,
                                              .bytes = sizeof values};
    char *path = file_path_join(directory, "weights.safetensors");
    uint32_t crc;
    int64_t size;
    cr_assert_eq(safetensors_write(path, &tensor, 1, NULL, DISK_FILE_CACHED, &crc, &size, NULL), 0);
    return path;
}

/* As ConfigMaps, Secrets and hubs of models keep theirs. */
Test(shared_storage, weights_that_a_user_names_may_be_a_link)
{
    const char *directory = test_directory();
    SCOPED_FREE char *path = write_tensors(directory);
    SCOPED_FREE char *link = file_path_join(directory, "link");
    struct safetensors_file file;
    struct error error = ERROR_INIT;
    cr_assert_eq(symlink(path, link), 0);
    cr_assert_eq(safetensors_open(link, &file, &error), 0, "%s", error.message);
    safetensors_close(&file);
    cr_expect_eq(safetensors_open_kept(link, &file, &error), -1);
}

Test(shared_storage, weights_that_are_a_fifo_are_refused_by_name)
{
    const char *directory = test_directory();
    SCOPED_FREE char *fifo = file_path_join(directory, "fifo");
    struct safetensors_file file;
    struct error error = ERROR_INIT;
    cr_assert_eq(mkfifo(fifo, 0600), 0);
    cr_expect_eq(safetensors_open(fifo, &file, &error), -1);
    cr_expect(strstr(error.message, fifo) && strstr(error.message, "is not a regular file but a FIFO"), "%s",
              error.message);
    cr_expect_eq(safetensors_open_kept(fifo, &file, &error), -1);
    cr_expect_eq(safetensors_open(directory, &file, &error), -1);
    cr_expect(strstr(error.message, "a directory"), "%s", error.message);
}

/* Without a guarded mapping the process dies of SIGBUS. */
Test(shared_storage, weights_that_are_cut_off_while_they_are_read_are_an_error)
{
    const char *directory = test_directory();
    SCOPED_FREE char *path = write_tensors(directory);
    struct safetensors_file file;
    struct error error = ERROR_INIT;
    cr_assert_eq(safetensors_open(path, &file, &error), 0, "%s", error.message);
    cr_expect_eq(safetensors_check(&file, &error), 0, "%s", error.message);
    cr_assert_eq(truncate(path, 4096), 0);
    cr_expect_eq(((const volatile float *)file.tensors[0].data)[TEST_ELEMENTS - 1], 0.0F);
    cr_expect_eq(safetensors_check(&file, &error), -1);
    cr_expect(error.kind == ERROR_NOT_FOUND && strstr(error.message, path), "%s", error.message);
    safetensors_close(&file);
}
