/* SPDX-License-Identifier: Apache-2.0
 *
 * What is lost when a save is killed, cut off from power, or its files are
 * damaged: never more than the save under way, and nothing wrong is ever loaded.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/memory.h"
#include "common/scope.h"
#include "directory.h"
#include "tests/unit/forking.h"
#include "worker/checkpoint/file.h"
#include "worker/checkpoint/image.h"
#include "worker/checkpoint/part.h"

/* ---- killed at every system call */

static int calls_left; /* the process ends at the call that finds none left */
static struct file_calls real;

static void count_call(void)
{
    if (calls_left-- == 0)
        _exit(9);
}

static int dying_open(const char *path, int flags, mode_t mode)
{
    count_call();
    return real.open(path, flags, mode);
}

/* Half of the bytes are on the disk when the process ends inside a write. */
static ssize_t dying_write(int descriptor, const void *bytes, size_t length)
{
    if (calls_left == 0)
        (void)!real.write(descriptor, bytes, length / 2);
    count_call();
    return real.write(descriptor, bytes, length);
}

static int dying_fsync(int descriptor)
{
    count_call();
    return real.fsync(descriptor);
}

static int dying_mkdir(const char *path, mode_t mode)
{
    count_call();
    return real.mkdir(path, mode);
}

static int dying_rename(const char *from, const char *to)
{
    count_call();
    return real.rename(from, to);
}

static int dying_link(const char *from, const char *to)
{
    count_call();
    return real.link(from, to);
}

static int dying_unlink(const char *path)
{
    count_call();
    return real.unlink(path);
}

static int dying_rmdir(const char *path)
{
    count_call();
    return real.rmdir(path);
}

static void die_after(int calls)
{
    calls_left = calls;
    real = file_calls;
    file_calls = (struct file_calls){dying_open, dying_write,  dying_fsync, real.close,    dying_mkdir,    dying_rename,
                                     dying_link, dying_unlink, dying_rmdir, real.exchange, real.sync_range};
}

/* A chief of incarnation 2 takes over and saves steps 40 and 50 (retention removes old ones on the way). */
static void take_over_and_save(const char *directory)
{
    struct checkpoint_store *store = test_open(directory, 2);
    struct checkpoint_image image;
    if (checkpoint_restore(store, NULL, NULL, &image, NULL) == 0)
        checkpoint_image_release(&image);
    if (checkpoint_store_begin(store, false, NULL) < 0)
        _exit(1);
    test_save(store, 40, NULL);
    test_save(store, 50, NULL);
    checkpoint_store_free(store);
}

static void prepare(const char *directory)
{
    struct checkpoint_store *store = test_open(directory, 1);
    cr_assert_eq(checkpoint_store_begin(store, false, NULL), 0);
    for (int64_t step = 10; step <= 30; step += 10)
        cr_assert_eq(test_save(store, step, NULL), 0);
    checkpoint_store_free(store);
}

/* True when the child came to its end by itself. */
static bool save_in_child(const char *directory, int calls)
{
    pid_t child = fork();
    if (child == 0) {
        die_after(calls);
        take_over_and_save(directory);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    cr_assert(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 9));
    return WEXITSTATUS(status) == 0;
}

Test(faults, killed_at_every_system_call_of_a_save)
{
    SKIP_WHERE_FORKS_ARE_NOT_FOLLOWED();
    int64_t last = 30;
    bool finished = false;
    int calls = 0;
    for (; !finished; calls++) {
        char directory[] = "/tmp/coxswain-killed-XXXXXX";
        cr_assert_not_null(mkdtemp(directory));
        prepare(directory);
        finished = save_in_child(directory, calls);
        int64_t step = test_restored_step(directory);
        cr_assert_geq(step, last, "killed at call %d: step %d was there before", calls, (int)last);
        last = step;
        /* The next chief must be able to work there. */
        struct checkpoint_store *store = test_open(directory, 3);
        struct error error = ERROR_INIT;
        cr_assert_eq(checkpoint_store_begin(store, false, &error), 0, "call %d: %s", calls, error.message);
        cr_assert_eq(test_save(store, 60, &error), 0, "call %d: %s", calls, error.message);
        checkpoint_store_free(store);
        test_directory_remove(directory);
    }
    cr_assert_eq(last, 50);
    cr_assert_gt(calls, 30, "only %d calls were tried", calls);
}

/* ---- power cut: what was not synced is gone */

#define TRACKED_MAX 64

/* Files open for writing, and whether all their bytes were synced. */
static struct tracked {
    int descriptor;
    char path[TEST_PATH_MAX];
    bool synced;
} tracked[TRACKED_MAX];
static int tracked_count;

static int tracking_open(const char *path, int flags, mode_t mode)
{
    count_call();
    int descriptor = real.open(path, flags, mode);
    if (descriptor >= 0 && (flags & O_ACCMODE) == O_WRONLY && tracked_count < TRACKED_MAX) {
        struct tracked *file = &tracked[tracked_count++];
        file->descriptor = descriptor;
        file->synced = false;
        snprintf(file->path, sizeof file->path, "%s", path);
    }
    return descriptor;
}

static int tracking_fsync(int descriptor)
{
    count_call();
    for (int i = 0; i < tracked_count; i++)
        if (tracked[i].descriptor == descriptor)
            tracked[i].synced = true;
    return real.fsync(descriptor);
}

/* Descriptors are reused: a later file's sync must not count for an earlier one. */
static int tracking_close(int descriptor)
{
    for (int i = 0; i < tracked_count; i++)
        if (tracked[i].descriptor == descriptor)
            tracked[i].descriptor = -1;
    return real.close(descriptor);
}

/* A rename reaches the disk with the file's content by then: nothing, if the file was not synced. */
static void lose_unsynced(void)
{
    for (int i = 0; i < tracked_count; i++)
        if (!tracked[i].synced)
            (void)!truncate(tracked[i].path, 0);
}

static int cutting_rename(const char *from, const char *to)
{
    lose_unsynced();
    count_call();
    return real.rename(from, to);
}

Test(faults, nothing_unsynced_is_ever_renamed_into_place)
{
    SKIP_WHERE_FORKS_ARE_NOT_FOLLOWED();
    const char *directory = test_directory();
    prepare(directory);
    pid_t child = fork();
    if (child == 0) {
        die_after(1 << 20);
        file_calls.open = tracking_open;
        file_calls.fsync = tracking_fsync;
        file_calls.close = tracking_close;
        file_calls.rename = cutting_rename;
        take_over_and_save(directory);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cr_assert_eq(test_restored_step(directory), 50);
}

/* ---- damage afterwards */

static void expect_older(const char *directory, const char *what, long where)
{
    cr_assert_eq(test_restored_step(directory), 20, "%s at %ld", what, where);
}

/* Puts the quarantined directory back, so that the next damage can be tried. */
static void bring_back(const char *directory)
{
    char bad[TEST_PATH_MAX], good[TEST_PATH_MAX];
    snprintf(bad, sizeof bad, "%s/.bad-step-00000030.attempt-1.incarnation-1", directory);
    snprintf(good, sizeof good, "%s/step-00000030.attempt-1.incarnation-1", directory);
    cr_assert_eq(rename(bad, good), 0, "the damaged checkpoint was not moved aside");
}

static void read_shard(const char *path, char **ret_bytes, long *ret_length)
{
    struct buffer bytes = BUFFER_INIT(1 << 20);
    cr_assert_eq(buffer_read_file(&bytes, path, NULL), 0);
    *ret_length = (long)bytes.length;
    *ret_bytes = buffer_take(&bytes);
}

static void write_shard(const char *path, const char *bytes, long length)
{
    FILE *file = fopen(path, "wb");
    cr_assert_eq(fwrite(bytes, 1, (size_t)length, file), (size_t)length);
    fclose(file);
}

Test(faults, truncated_at_every_block)
{
    const char *directory = test_directory();
    char path[TEST_PATH_MAX], *bytes;
    long length;
    prepare(directory);
    test_shard_path(directory, 30, 1, path);
    read_shard(path, &bytes, &length);
    for (long end = 0; end < length; end += 512) {
        write_shard(path, bytes, end);
        expect_older(directory, "truncated", end);
        bring_back(directory);
    }
    free(bytes);
}

Test(faults, flipped_bits)
{
    const char *directory = test_directory();
    char path[TEST_PATH_MAX], *bytes;
    long length;
    prepare(directory);
    test_shard_path(directory, 30, 1, path);
    read_shard(path, &bytes, &length);
    for (long bit = 0; bit < 8 * length; bit += 997) {
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        write_shard(path, bytes, length);
        expect_older(directory, "bit flipped", bit);
        bring_back(directory);
        bytes[bit / 8] ^= (char)(1 << bit % 8);
    }
    write_shard(path, bytes, length);
    cr_assert_eq(test_restored_step(directory), 30, "whole again");
    free(bytes);
}

Test(faults, headers_are_read_without_the_numbers)
{
    const char *directory = test_directory();
    const struct checkpoint_name name = {.step = 30, .attempt = 1, .incarnation = 1};
    char path[TEST_PATH_MAX], own[TEST_PATH_MAX], *bytes;
    struct checkpoint_image image;
    struct error error = ERROR_INIT;
    long length;
    prepare(directory);
    snprintf(own, sizeof own, "%s/step-00000030.attempt-1.incarnation-1", directory);
    test_shard_path(directory, 30, 1, path);
    read_shard(path, &bytes, &length);
    bytes[length - 1] ^= 1;
    write_shard(path, bytes, length);
    cr_expect_eq(checkpoint_image_open(own, &name, &image, &error), -1);
    cr_expect_eq(error.kind, ERROR_CORRUPT);
    cr_assert_eq(checkpoint_image_open_headers(own, &name, &image, &error), 0, "%s", error.message);
    cr_expect_eq(image.file_count, 1);
    cr_expect_eq(image.files[0].count, 2);
    checkpoint_image_release(&image);
    for (long end = 0; end < length; end += 512) {
        write_shard(path, bytes, end);
        cr_expect_eq(checkpoint_image_open_headers(own, &name, &image, &error), -1, "cut at %ld", end);
        cr_expect_eq(error.kind, ERROR_CORRUPT);
    }
    free(bytes);
}

Test(faults, a_missing_file_or_manifest)
{
    const char *directory = test_directory();
    char path[TEST_PATH_MAX];
    prepare(directory);
    test_shard_path(directory, 30, 1, path);
    cr_assert_eq(unlink(path), 0);
    expect_older(directory, "shard missing", 0);
    snprintf(path, sizeof path, "%s/step-00000020.attempt-1.incarnation-1/manifest.json", directory);
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(test_restored_step(directory), 10);
}

/* ---- a disk that fails */

static int failing_errno;

static ssize_t failing_write(int descriptor, const void *bytes, size_t length)
{
    (void)descriptor, (void)bytes, (void)length;
    errno = failing_errno;
    return -1;
}

Test(faults, a_full_disk_fails_the_save_and_nothing_else)
{
    const char *directory = test_directory();
    struct checkpoint_store *store = test_open(directory, 1);
    struct error error = ERROR_INIT;
    cr_assert_eq(checkpoint_store_begin(store, false, NULL), 0);
    cr_assert_eq(test_save(store, 10, NULL), 0);
    real = file_calls;
    failing_errno = ENOSPC;
    file_calls.write = failing_write;
    cr_assert_eq(test_save(store, 20, &error), -1);
    cr_assert_eq(error.kind, ERROR_NO_SPACE, "%s", error.message);
    file_calls = real;
    cr_assert_eq(checkpoint_store_counts(store).failed, 1);
    cr_assert_eq(test_save(store, 30, &error), 0, "%s", error.message);
    checkpoint_store_free(store);
    cr_assert_eq(test_restored_step(directory), 30);
}

/* A store that has saved step 10; `ret_bad`: where its save of step 20 goes if that is moved aside. */
static struct checkpoint_store *open_with_one(const char *directory, char ret_bad[TEST_PATH_MAX])
{
    struct checkpoint_store *store = test_open(directory, 1);
    snprintf(ret_bad, TEST_PATH_MAX, "%s/.bad-step-00000020.attempt-1.incarnation-1", directory);
    cr_assert_eq(checkpoint_store_begin(store, false, NULL), 0);
    cr_assert_eq(test_save(store, 10, NULL), 0);
    return store;
}

/* Takes it all, and keeps something else of what is longer than a few words. */
static ssize_t forgetful_write(int descriptor, const void *bytes, size_t length)
{
    SCOPED_FREE unsigned char *kept = memory_allocate(length, 1);
    memcpy(kept, bytes, length);
    if (length >= TEST_ELEMENTS)
        kept[length / 2] ^= 4;
    return real.write(descriptor, kept, length);
}

Test(faults, what_reads_back_differently_fails_the_save_and_is_moved_aside)
{
    const char *directory = test_directory();
    char bad[TEST_PATH_MAX];
    struct checkpoint_store *store = open_with_one(directory, bad);
    struct error error = ERROR_INIT;
    real = file_calls;
    file_calls.write = forgetful_write;
    cr_assert_eq(test_save(store, 20, &error), -1);
    file_calls = real;
    cr_assert_eq(error.kind, ERROR_CORRUPT, "%s", error.message);
    cr_assert_eq(access(bad, F_OK), 0, "%s", error.message);
    cr_assert_eq(checkpoint_store_counts(store).committed_step, 10);
    checkpoint_store_free(store);
    cr_assert_eq(test_restored_step(directory), 10);
}

/* Saves step 20 together with a part of rank 1 that exists or never will. */
static int save_with_part(struct checkpoint_store *store, const struct checkpoint_part_key *key, struct error *error)
{
    static const float values[TEST_ELEMENTS];
    const struct safetensors_tensor tensor = {.name = "w",
                                              .dtype = SAFETENSORS_F32,
                                              .shape = {TEST_ELEMENTS},
                                              .rank = 1,
                                              .data = values,
                                              .bytes = sizeof values};
    const struct manifest manifest = {.step = key->step, .workers = 2, .logical_shards = 2};
    enum checkpoint_start start;
    cr_assert_eq(checkpoint_save_with_parts(store, &manifest, &tensor, 1, key, 2, &start, NULL), 0);
    checkpoint_fence(store);
    checkpoint_give_up_parts(store);
    return checkpoint_wait(store, error);
}

Test(faults, a_save_after_one_that_reads_back_differently_finds_the_parts_again, .timeout = 60)
{
    const char *directory = test_directory();
    struct checkpoint_store *store = test_open(directory, 1);
    struct part_writer *writer = part_writer_new(directory, NULL);
    struct error error = ERROR_INIT;
    static const float value = 7;
    const struct safetensors_tensor tensor = {
        .name = "v", .dtype = SAFETENSORS_F32, .shape = {1}, .rank = 1, .data = &value, .bytes = sizeof value};
    const struct checkpoint_part_key key = {.attempt = 1, .incarnation = 1, .counter = 1, .step = 20, .rank = 1};
    cr_assert_eq(checkpoint_store_begin(store, false, NULL), 0);
    cr_assert(part_writer_save(writer, &key, &tensor, 1, NULL) == 0 && part_writer_wait(writer, NULL) == 0);
    real = file_calls;
    file_calls.write = forgetful_write;
    cr_assert_eq(save_with_part(store, &key, &error), -1);
    file_calls = real;
    cr_assert_eq(error.kind, ERROR_CORRUPT, "%s", error.message);
    cr_assert_eq(save_with_part(store, &key, &error), 0, "%s", error.message);
    SCOPED_FREE char *part = memory_format("%s/.part-1.1.1-step-00000020-rank-00001", directory);
    cr_expect_eq(access(part, F_OK), -1, "it has been taken");
    part_writer_free(writer);
    checkpoint_store_free(store);
}

static char shard[TEST_PATH_MAX];

/* As a disk that cannot read the committed file just now. */
static int open_but_the_shard(const char *path, int flags, mode_t mode)
{
    errno = EIO;
    return strcmp(path, shard) == 0 ? -1 : real.open(path, flags, mode);
}

Test(faults, what_cannot_be_read_back_fails_the_save_and_stays_where_it_is)
{
    const char *directory = test_directory();
    char bad[TEST_PATH_MAX];
    struct checkpoint_store *store = open_with_one(directory, bad);
    struct error error = ERROR_INIT;
    test_shard_path(directory, 20, 1, shard);
    real = file_calls;
    file_calls.open = open_but_the_shard;
    cr_assert_eq(test_save(store, 20, &error), -1);
    file_calls = real;
    cr_assert_neq(error.kind, ERROR_CORRUPT, "%s", error.message);
    cr_assert_eq(access(bad, F_OK), -1, "%s", error.message);
    cr_assert_eq(checkpoint_store_counts(store).committed_step, 10);
    cr_assert_eq(test_restored_step(directory), 20, "it was whole");
    checkpoint_store_free(store);
}

Test(faults, a_step_that_is_there_already_is_saved_again)
{
    const char *directory = test_directory();
    struct checkpoint_store *store = test_open(directory, 1);
    struct error error = ERROR_INIT;
    cr_assert_eq(checkpoint_store_begin(store, false, NULL), 0);
    cr_assert_eq(test_save(store, 10, NULL), 0);
    cr_assert_eq(test_save(store, 10, &error), 0, "%s", error.message);
    cr_assert_eq(checkpoint_store_counts(store).saved, 2);
    checkpoint_store_free(store);
    cr_assert_eq(test_restored_step(directory), 10);
}

/* ---- retention */

Test(faults, retention_never_leaves_only_bad_ones)
{
    const char *directory = test_directory();
    char path[TEST_PATH_MAX];
    prepare(directory); /* 10, 20, 30 */
    for (int64_t step = 20; step <= 30; step += 10) {
        test_shard_path(directory, step, 1, path);
        cr_assert_eq(truncate(path, 100), 0);
    }
    struct checkpoint_store *store = test_open(directory, 2);
    cr_assert_eq(checkpoint_store_begin(store, true, NULL), 0);
    cr_assert_eq(test_save(store, 40, NULL), 0);
    cr_assert_eq(test_save(store, 50, NULL), 0);
    checkpoint_store_free(store);
    /* keep is 3: 50, 40 and, because 30 and 20 are bad, 10. */
    test_shard_path(directory, 10, 1, path);
    cr_assert_eq(access(path, F_OK), 0, "the only whole old checkpoint was removed");
}

Test(faults, retention_removes_what_is_beyond_keep)
{
    const char *directory = test_directory();
    char path[TEST_PATH_MAX];
    prepare(directory);
    struct checkpoint_store *store = test_open(directory, 2);
    struct checkpoint_image image;
    cr_assert_eq(checkpoint_restore(store, NULL, NULL, &image, NULL), 0);
    checkpoint_image_release(&image);
    cr_assert_eq(checkpoint_store_begin(store, false, NULL), 0);
    cr_assert_eq(test_save(store, 40, NULL), 0);
    checkpoint_store_free(store);
    test_shard_path(directory, 10, 1, path);
    cr_assert_eq(access(path, F_OK), -1);
    test_shard_path(directory, 20, 1, path);
    cr_assert_eq(access(path, F_OK), 0);
}

/* ---- one save at a time */

static ssize_t slow_write(int descriptor, const void *bytes, size_t length)
{
    usleep(20000);
    return real.write(descriptor, bytes, length);
}

Test(faults, a_save_that_finds_another_under_way_is_skipped)
{
    const char *directory = test_directory();
    struct checkpoint_store *store = test_open(directory, 1);
    static const float value = 1;
    const struct safetensors_tensor tensor = {
        .name = "w", .dtype = SAFETENSORS_F32, .shape = {1}, .rank = 1, .data = &value, .bytes = 4};
    const struct manifest manifest = {.step = 1, .workers = 1, .logical_shards = 1};
    enum checkpoint_start first, second;
    cr_assert_eq(checkpoint_store_begin(store, false, NULL), 0);
    real = file_calls;
    file_calls.write = slow_write;
    cr_assert_eq(checkpoint_save(store, &manifest, &tensor, 1, &first, NULL), 0);
    cr_assert_eq(checkpoint_save(store, &manifest, &tensor, 1, &second, NULL), 0);
    cr_assert_eq(first, CHECKPOINT_STARTED);
    cr_assert_eq(second, CHECKPOINT_SKIPPED);
    cr_assert_eq(checkpoint_wait(store, NULL), 0);
    cr_assert_eq(checkpoint_store_counts(store).skipped, 1);
    checkpoint_store_free(store);
    file_calls = real;
}

/* Large enough that the copy is still under way when the fence is called. */
#define FENCED_ELEMENTS (8 << 20)

Test(faults, tensors_may_change_after_the_fence)
{
    const char *directory = test_directory();
    struct checkpoint_store *store = test_open(directory, 1);
    SCOPED_FREE float *values = memory_allocate(FENCED_ELEMENTS, sizeof *values);
    const struct safetensors_tensor tensor = {.name = "w",
                                              .dtype = SAFETENSORS_F32,
                                              .shape = {FENCED_ELEMENTS},
                                              .rank = 1,
                                              .data = values,
                                              .bytes = FENCED_ELEMENTS * sizeof *values};
    const struct manifest manifest = {.step = 1, .workers = 1, .logical_shards = 1};
    enum checkpoint_start start;
    cr_assert_eq(checkpoint_store_begin(store, false, NULL), 0);
    cr_assert_eq(checkpoint_save(store, &manifest, &tensor, 1, &start, NULL), 0);
    checkpoint_fence(store);
    for (size_t i = 0; i < FENCED_ELEMENTS; i++)
        values[i] = 1;
    cr_assert_eq(checkpoint_wait(store, NULL), 0);

    struct checkpoint_image image;
    cr_assert_eq(checkpoint_restore(store, NULL, NULL, &image, NULL), 0);
    const float *saved = checkpoint_image_find(&image, "w")->data;
    for (size_t i = 0; i < FENCED_ELEMENTS; i++)
        cr_assert_eq(saved[i], 0, "element %zu is of a later step", i);
    checkpoint_image_release(&image);
    checkpoint_store_free(store);
}

Test(faults, a_save_is_whole_however_much_was_expected)
{
    const char *directory = test_directory();
    struct error error = ERROR_INIT;
    struct checkpoint_store *store = test_open(directory, 1);
    cr_assert_eq(checkpoint_store_begin(store, false, &error), 0, "%s", error.message);
    checkpoint_expect(store, 1); /* less than a save will copy, then more, with a save on its heels */
    cr_assert_eq(test_save(store, 10, &error), 0, "%s", error.message);
    checkpoint_expect(store, (size_t)TEST_ELEMENTS * 64);
    cr_assert_eq(test_save(store, 20, &error), 0, "%s", error.message);
    checkpoint_expect(store, (size_t)1 << 20);
    checkpoint_store_free(store); /* with the memory perhaps not ready yet */
    cr_assert_eq(test_restored_step(directory), 20);
}
