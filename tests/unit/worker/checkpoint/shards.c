/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints with shards that other processes write: several saves of one step, between which parameter servers have applied more
 * updates.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/contract/checkpoint_layout.h"
#include "directory.h"
#include "tests/unit/forking.h"
#include "worker/checkpoint/file.h"

static int commit(struct checkpoint_store *store, float value, bool replaces, bool *ret_draft_stays,
                  struct error *error)
{
    char *directory, path[TEST_PATH_MAX];
    struct manifest_file file = {.name = "shard"};
    struct manifest manifest = {
        .step = 40, .workers = 2, .logical_shards = 4, .seed = 7, .files = &file, .file_count = 1};
    const struct safetensors_tensor tensor = {
        .name = "w", .dtype = SAFETENSORS_F32, .shape = {1}, .rank = 1, .data = &value, .bytes = sizeof value};
    cr_assert(checkpoint_shards_begin(store, &directory, NULL) == 0);
    snprintf(path, sizeof path, "%s/shard", directory);
    cr_assert(safetensors_write(path, &tensor, 1, NULL, DISK_FILE_CACHED, &file.crc32c, &file.bytes, NULL) == 0);
    int result = checkpoint_shards_commit(store, directory, &manifest, replaces, error);
    *ret_draft_stays = access(directory, F_OK) == 0;
    free(directory);
    return result;
}

static int save(struct checkpoint_store *store, float value, bool replaces, struct error *error)
{
    bool draft_stays;
    int result = commit(store, value, replaces, &draft_stays, error);
    cr_expect(!draft_stays, "the draft stays");
    return result;
}

/* Those out of sight. */
static unsigned count_hidden(const char *directory)
{
    DIR *entries = opendir(directory);
    unsigned count = 0;
    cr_assert_not_null(entries);
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;)
        count += entry->d_name[0] == '.' && strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(entries);
    return count;
}

/* As the next chief would load it, all digests checked. */
static float restored(const char *directory)
{
    struct checkpoint_store *store = test_open(directory, 2);
    struct checkpoint_image image;
    cr_assert(checkpoint_restore(store, NULL, NULL, &image, NULL) == 0);
    const struct safetensors_tensor *tensor = checkpoint_image_find(&image, "w");
    cr_assert_not_null(tensor);
    float value = *(const float *)tensor->data;
    checkpoint_image_release(&image);
    checkpoint_store_free(store);
    return value;
}

static struct checkpoint_store *begin(const char *directory)
{
    struct checkpoint_store *store = test_open(directory, 1);
    cr_assert(checkpoint_store_begin(store, false, NULL) == 0);
    return store;
}

static void expect_after_two(bool replaces, float expected)
{
    const char *directory = test_directory();
    struct checkpoint_store *store = begin(directory);
    cr_assert(save(store, 1, true, NULL) == 0);
    cr_assert(save(store, 2, replaces, NULL) == 0);
    checkpoint_store_free(store);
    cr_expect(restored(directory) == expected);
}

Test(shards, a_save_of_the_same_step_replaces_the_one_before)
{
    expect_after_two(true, 2);
}

Test(shards, a_save_of_the_same_step_is_dropped_where_it_says_nothing_new)
{
    expect_after_two(false, 1);
}

static int no_exchange(const char *one, const char *other)
{
    (void)one, (void)other;
    errno = EINVAL;
    return -1;
}

/* Volumes of networks, which crews of several nodes share. */
Test(shards, a_file_system_that_cannot_exchange_names_replaces_in_two_steps)
{
    file_calls.exchange = no_exchange;
    expect_after_two(true, 2);
}

static int full(const char *one, const char *other)
{
    (void)one, (void)other;
    errno = ENOSPC;
    return -1;
}

Test(shards, a_replacement_that_fails_leaves_the_one_before)
{
    const char *directory = test_directory();
    struct checkpoint_store *store = begin(directory);
    cr_assert(save(store, 1, true, NULL) == 0);
    file_calls.exchange = full;
    cr_expect(save(store, 2, true, NULL) < 0);
    cr_expect(restored(directory) == 1);
    checkpoint_store_free(store);
}

static int (*rename_really)(const char *from, const char *to);

static int refuse_the_new_one(const char *from, const char *to)
{
    if (strstr(from, CHECKPOINT_SAVING_PREFIX) == NULL)
        return rename_really(from, to);
    errno = EIO;
    return -1;
}

Test(shards, a_replacement_that_fails_half_way_is_undone)
{
    const char *directory = test_directory();
    struct checkpoint_store *store = begin(directory);
    cr_assert(save(store, 1, true, NULL) == 0);
    rename_really = file_calls.rename;
    file_calls.exchange = no_exchange;
    file_calls.rename = refuse_the_new_one;
    cr_expect(save(store, 2, true, NULL) < 0);
    cr_expect(count_hidden(directory) == 0);
    file_calls.rename = rename_really;
    cr_expect(restored(directory) == 1);
    checkpoint_store_free(store);
}

static int keep(const char *path)
{
    (void)path;
    errno = EBUSY;
    return -1;
}

static void expect_success_though_the_older_stays(void)
{
    const char *directory = test_directory();
    struct checkpoint_store *store = begin(directory);
    cr_assert(save(store, 1, true, NULL) == 0);
    int (*remove)(const char *path) = file_calls.rmdir;
    file_calls.rmdir = keep;
    struct error error = ERROR_INIT;
    bool draft_stays;
    cr_expect(commit(store, 2, true, &draft_stays, &error) == 0, "%s", error.message);
    file_calls.rmdir = remove;
    checkpoint_store_free(store);
    cr_expect(restored(directory) == 2);
    cr_expect(count_hidden(directory) == 0);
}

Test(shards, an_older_save_that_cannot_be_removed_is_no_failure)
{
    expect_success_though_the_older_stays();
    file_calls.exchange = no_exchange;
    expect_success_though_the_older_stays();
}

/* ---- killed */

static int calls_left; /* the process ends at the call that finds none left */
static struct file_calls real;

static void count_call(void)
{
    if (calls_left-- == 0)
        _exit(9);
}

static int dying_rename(const char *from, const char *to)
{
    count_call();
    return real.rename(from, to);
}

static int dying_fsync(int descriptor)
{
    count_call();
    return real.fsync(descriptor);
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

/* True when it came to its end. */
static bool save_in_child(struct checkpoint_store *store, int calls)
{
    pid_t child = fork();
    if (child == 0) {
        calls_left = calls;
        real = file_calls;
        file_calls.rename = dying_rename;
        file_calls.fsync = dying_fsync;
        file_calls.unlink = dying_unlink;
        file_calls.rmdir = dying_rmdir;
        save(store, 2, true, NULL);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    cr_assert(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 9));
    return WEXITSTATUS(status) == 0;
}

/* One of the two is there, and it is the newer one once that was. */
static void expect_to_survive_every_call(void)
{
    bool finished = false;
    float last = 1;
    for (int calls = 0; !finished; calls++) {
        const char *directory = test_directory();
        struct checkpoint_store *store = begin(directory);
        cr_assert(save(store, 1, true, NULL) == 0);
        finished = save_in_child(store, calls);
        checkpoint_store_free(store);
        float value = restored(directory);
        cr_assert(value >= last, "killed at call %d: %g", calls, (double)value);
        last = value;
        cr_expect(count_hidden(directory) == 0, "killed at call %d", calls);
        test_directory_remove(directory);
    }
    cr_expect(last == 2);
}

Test(shards, killed_at_every_system_call_of_a_replacement)
{
    SKIP_WHERE_FORKS_ARE_NOT_FOLLOWED();
    expect_to_survive_every_call();
    file_calls.exchange = no_exchange;
    expect_to_survive_every_call();
}
