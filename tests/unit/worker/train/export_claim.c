/* SPDX-License-Identifier: Apache-2.0
 *
 * Exports of jobs without a checkpoint directory: a chief that was cut off, and comes
 * back after its successor has exported, changes nothing.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/memory.h"
#include "common/scope.h"
#include "worker/checkpoint/file.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/train/export.h"

struct bench {
    char directory[64], path[96], chiefs[96];
};

static struct bench open_bench(void)
{
    struct bench b = {.directory = "/tmp/coxswain-export-XXXXXX"};
    cr_assert_not_null(mkdtemp(b.directory));
    snprintf(b.path, sizeof b.path, "%s/w.safetensors", b.directory);
    snprintf(b.chiefs, sizeof b.chiefs, "%s/.w.safetensors.chiefs", b.directory);
    return b;
}

static void close_bench(const struct bench *b)
{
    unlink(b->path);
    cr_expect_eq(file_remove_directory(b->chiefs, NULL), 0);
    cr_expect_eq(rmdir(b->directory), 0, "something else was left");
}

/* Weights that are that chief's: its incarnation. */
static int export_of(const struct bench *b, const char *uid, int64_t incarnation, struct error *error)
{
    const struct parameter_tensor tensor = {.name = "w", .shape = {2}, .rank = 1, .elements = 2};
    const float values[] = {(float)incarnation, (float)incarnation};
    const struct parameter_layout layout = {.tensors = &tensor, .tensor_count = 1, .elements = 2};
    const struct export export = {
        .layout = &layout, .parameters = values, .names = EXPORT_OWN_NAMES, .claim = {uid, 1, incarnation}};
    return export_write(&export, b->path, NULL, error);
}

static float exported(const struct bench *b)
{
    struct safetensors_file file;
    struct error error = ERROR_INIT;
    cr_assert_eq(safetensors_open(b->path, &file, &error), 0, "%s", error.message);
    float value = *(const float *)safetensors_find(&file, "w")->data;
    safetensors_close(&file);
    return value;
}

static void must_export(const struct bench *b, const char *uid, int64_t incarnation)
{
    struct error error = ERROR_INIT;
    cr_assert_eq(export_of(b, uid, incarnation, &error), 0, "%s", error.message);
    cr_expect_eq(exported(b), (float)incarnation);
}

static void must_not_export(const struct bench *b, const char *uid, int64_t incarnation, enum error_kind kind)
{
    struct error error = ERROR_INIT;
    cr_assert_eq(export_of(b, uid, incarnation, &error), -1);
    cr_expect_eq(error.kind, kind, "%s", error.message);
}

Test(export_claim, a_chief_that_comes_back_after_its_successor_leaves_the_file)
{
    struct bench b = open_bench();
    must_export(&b, "job", 2);
    must_not_export(&b, "job", 1, ERROR_STALE);
    cr_expect_eq(exported(&b), 2);
    close_bench(&b);
}

Test(export_claim, a_successor_and_the_same_pod_again_replace_it)
{
    struct bench b = open_bench();
    must_export(&b, "job", 1);
    must_export(&b, "job", 1);
    must_export(&b, "job", 2);
    must_export(&b, "other", 1);
    close_bench(&b);
}

static const struct bench *bench_of_both;
static const char *uid_of_other;

/* The other's whole export, while a chief syncs its draft. */
static int sync_after_the_other(int descriptor)
{
    file_calls.fsync = fsync;
    must_export(bench_of_both, uid_of_other, 5);
    return fsync(descriptor);
}

static void check_meanwhile(const char *other, enum error_kind kind)
{
    struct bench b = open_bench();
    bench_of_both = &b;
    uid_of_other = other;
    must_export(&b, "job", 4);
    file_calls.fsync = sync_after_the_other;
    must_not_export(&b, "job", 4, kind);
    file_calls.fsync = fsync;
    cr_expect_eq(exported(&b), 5);
    close_bench(&b);
}

Test(export_claim, a_chief_that_stood_still_while_it_wrote_does_not_take_the_name)
{
    check_meanwhile("job", ERROR_STALE);
}

Test(export_claim, a_chief_does_not_publish_a_file_that_another_job_has_begun)
{
    check_meanwhile("other", ERROR_CONFLICT);
}

Test(export_claim, a_damaged_record_keeps_nobody_from_writing)
{
    struct bench b = open_bench();
    SCOPED_FREE char *record = memory_format("%s/incarnation-9.json", b.chiefs);
    cr_assert_eq(file_make_directories(b.chiefs, NULL), 0);
    cr_assert_eq(file_write(record, "{}", 2, NULL), 0);
    must_export(&b, "job", 1);
    close_bench(&b);
}

Test(export_claim, by_hand_nothing_stands_beside_the_file)
{
    struct bench b = open_bench();
    must_export(&b, "", 0);
    cr_expect_neq(access(b.chiefs, F_OK), 0);
    close_bench(&b);
}
