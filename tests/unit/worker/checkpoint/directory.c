/* SPDX-License-Identifier: Apache-2.0 */
#include "directory.h"

#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

static char created[TEST_PATH_MAX];
static pid_t creator;

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *position)
{
    (void)status, (void)type, (void)position;
    return remove(path);
}

void test_directory_remove(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A forked child that ends must not take the directory with it. */
static void remove_created(void)
{
    if (getpid() == creator)
        test_directory_remove(created);
}

const char *test_directory(void)
{
    snprintf(created, sizeof created, "/tmp/coxswain-checkpoint-XXXXXX");
    cr_assert_not_null(mkdtemp(created));
    creator = getpid();
    atexit(remove_created);
    return created;
}

static struct checkpoint_store *open_for(const char *directory, const char *job_uid, int64_t incarnation)
{
    const struct checkpoint_options options = {
        .directory = directory, .job_uid = job_uid, .attempt = 1, .incarnation = incarnation, .keep = 3};
    struct checkpoint_store *store;
    struct error error = ERROR_INIT;
    cr_assert_eq(checkpoint_store_open(&options, &store, &error), 0, "%s", error.message);
    return store;
}

struct checkpoint_store *test_open(const char *directory, int64_t incarnation)
{
    return open_for(directory, "job", incarnation);
}

int test_save(struct checkpoint_store *store, int64_t step, struct error *error)
{
    static float values[TEST_ELEMENTS];
    for (int i = 0; i < TEST_ELEMENTS; i++)
        values[i] = (float)step;
    const struct safetensors_tensor tensors[] = {
        {.name = "weight",
         .dtype = SAFETENSORS_F32,
         .shape = {TEST_ELEMENTS - 8},
         .rank = 1,
         .data = values,
         .bytes = (TEST_ELEMENTS - 8) * sizeof values[0]},
        {.name = "bias",
         .dtype = SAFETENSORS_F32,
         .shape = {2, 4},
         .rank = 2,
         .data = values,
         .bytes = 8 * sizeof values[0]},
    };
    const struct manifest manifest = {.step = step, .workers = 2, .logical_shards = 4, .seed = 7};
    enum checkpoint_start start;
    if (checkpoint_save(store, &manifest, tensors, 2, &start, error) < 0)
        return -1;
    return checkpoint_wait(store, error);
}

static void check_values(const struct checkpoint_image *image)
{
    static const char *const names[] = {"weight", "bias"};
    for (int i = 0; i < 2; i++) {
        const struct safetensors_tensor *tensor = checkpoint_image_find(image, names[i]);
        cr_assert_not_null(tensor);
        const float *values = tensor->data;
        for (size_t j = 0; j < tensor->bytes / sizeof *values; j++)
            cr_assert_eq(values[j], (float)image->manifest.step, "a wrong value was loaded");
    }
}

int64_t test_restored_step(const char *directory)
{
    struct checkpoint_store *store = open_for(directory, "", 0); /* by hand: a claim of its own at every look */
    struct checkpoint_image image;
    struct error error = ERROR_INIT;
    int64_t step = -1;
    if (checkpoint_restore(store, NULL, NULL, &image, &error) == 0) {
        check_values(&image);
        step = image.manifest.step;
        checkpoint_image_release(&image);
    } else {
        cr_assert_eq(error.kind, ERROR_NOT_FOUND, "%s", error.message);
    }
    checkpoint_store_free(store);
    return step;
}

void test_shard_path(const char *directory, int64_t step, int64_t incarnation, char path[TEST_PATH_MAX])
{
    const struct checkpoint_name name = {.step = step, .attempt = 1, .incarnation = incarnation};
    char text[CHECKPOINT_NAME_MAX];
    checkpoint_name_format(&name, text);
    snprintf(path, TEST_PATH_MAX, "%s/%s/rank-00000.safetensors", directory, text);
}
