/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints whose shards other processes write: what becomes of several saves of
 * one step, between which parameter servers have applied more.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "directory.h"
#include "worker/checkpoint/file.h"

static int save(struct checkpoint_store *store, float value, bool replaces, struct error *error)
{
    char *directory, path[TEST_PATH_MAX];
    struct manifest_file file = {.name = "shard"};
    struct manifest manifest = {
        .step = 40, .workers = 2, .logical_shards = 4, .seed = 7, .files = &file, .file_count = 1};
    const struct safetensors_tensor tensor = {
        .name = "w", .dtype = SAFETENSORS_F32, .shape = {1}, .rank = 1, .data = &value, .bytes = sizeof value};
    cr_assert(checkpoint_shards_begin(store, &directory, NULL) == 0);
    snprintf(path, sizeof path, "%s/shard", directory);
    cr_assert(safetensors_write(path, &tensor, 1, NULL, &file.crc32c, &file.bytes, NULL) == 0);
    int result = checkpoint_shards_commit(store, directory, &manifest, replaces, error);
    cr_expect(access(directory, F_OK) < 0 && errno == ENOENT, "the draft stays");
    free(directory);
    return result;
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

Test(shards, a_file_system_that_cannot_replace_keeps_the_one_before)
{
    const char *directory = test_directory();
    struct checkpoint_store *store = begin(directory);
    cr_assert(save(store, 1, true, NULL) == 0);
    file_calls.exchange = no_exchange;
    cr_expect(save(store, 2, true, NULL) < 0);
    cr_expect(restored(directory) == 1);
    checkpoint_store_free(store);
}
