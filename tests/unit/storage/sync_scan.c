/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/sync_scan.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/clock.h"
#include "common/directory.h"
#include "common/memory.h"

#define SECOND 1000000000

static char folder[32];

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/sync.XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
}

static void remove_folder(void)
{
    directory_remove(folder);
}

/* Writes a file that was modified `second` seconds after 1970. */
static void put(const char *path, int second)
{
    SCOPED_FREE char *whole = memory_format("%s/%s", folder, path);
    SCOPED_FREE char *parent = memory_copy_bytes(whole, (size_t)(strrchr(whole, '/') - whole));
    cr_assert_eq(directory_make(parent, NULL), 0);
    FILE *file = fopen(whole, "w");
    cr_assert(file && fputs("x", file) >= 0 && fclose(file) == 0);
    struct timespec times[2] = {{.tv_sec = second}, {.tv_sec = second}};
    cr_assert_eq(utimensat(AT_FDCWD, whole, times, 0), 0);
}

static int64_t now(void)
{
    return clock_now_ms() * 1000000;
}

static struct sync_scan scan_of(const char *checkpoints, int64_t now_ns, int64_t settle_ns)
{
    struct sync_scan scan;
    struct error error = ERROR_INIT;
    cr_assert_eq(sync_scan(folder, checkpoints, now_ns, settle_ns, &scan, &error), 0, "%s", error.message);
    return scan;
}

/* "a/b:READY …": each unit in the order of uploading. */
static const char *units(const struct sync_scan *scan)
{
    static const char *const states[] = {"ready", "changing", "incomplete"};
    static char text[1000];
    *text = '\0';
    for (size_t i = 0; i < scan->unit_count; i++) {
        const struct sync_unit *unit = &scan->units[i];
        const struct sync_file *file = &scan->files[unit->first];
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "%s%.*s%s:%zu:%s", i > 0 ? " " : "", (int)file->unit_length,
                 file->path, unit->is_folder ? "/" : "", unit->count, states[unit->state]);
    }
    return text;
}

Test(sync_scan, entries_of_the_folder_of_checkpoints_are_units, .init = make_folder, .fini = remove_folder)
{
    put("job/7/state/a", 1);
    put("job/7/state/b", 1);
    put("job/7/mark", 1);
    put("job/latest", 1);
    put("job/70/x", 1);
    put("job.txt", 1);
    put("other/deep/y", 1);
    struct sync_scan scan = scan_of("job", now(), 0);
    const char *text = units(&scan);
    static const char *const wanted[] = {"job/7/:3:ready", "job/latest:1:ready", "job/70/:1:ready", "job.txt:1:ready",
                                         "other/:1:ready"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        cr_assert(strstr(text, wanted[i]), "%s lacks %s", text, wanted[i]);
    cr_assert_eq(scan.unit_count, 5);
    sync_scan_release(&scan);
    scan = scan_of("", now(), 0);
    cr_assert(strstr(units(&scan), "job/:5:ready"), "%s", units(&scan));
    sync_scan_release(&scan);
    scan = scan_of("a/b", now(), 0);
    cr_assert(strstr(units(&scan), "job/:5:ready"), "%s", units(&scan));
    sync_scan_release(&scan);
}

Test(sync_scan, what_was_written_last_comes_last, .init = make_folder, .fini = remove_folder)
{
    /* The time of the change cannot be set: these follow one another. */
    const struct timespec pause = {.tv_nsec = 20000000};
    static const char *const paths[] = {"z.data", "step-2/a", "step-1/a", "latest"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        put(paths[i], 1);
        nanosleep(&pause, NULL);
    }
    struct sync_scan scan = scan_of("", now(), 0);
    cr_assert_str_eq(units(&scan), "z.data:1:ready step-2/:1:ready step-1/:1:ready latest:1:ready");
    sync_scan_release(&scan);
}

static const char *order(const struct sync_scan *scan)
{
    static char text[1000];
    struct sync_file *files[8];
    *text = '\0';
    cr_assert_leq(scan->units[0].count, 8);
    sync_scan_order(scan, &scan->units[0], files);
    for (size_t i = 0; i < scan->units[0].count; i++) {
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "%s%s", i > 0 ? " " : "", strchr(files[i]->path, '/') + 1);
    }
    return text;
}

Test(sync_scan, files_of_a_unit_in_the_order_of_writing_and_marks_last, .init = make_folder, .fini = remove_folder)
{
    put("checkpoint-5/trainer_state.json", 1); /* as if a copy had changed the times */
    put("checkpoint-5/optimizer.pt", 9);
    put("checkpoint-5/model.safetensors", 8);
    put("checkpoint-5/b", 9);
    struct sync_scan scan = scan_of("", now(), 0);
    cr_assert_str_eq(order(&scan), "model.safetensors b optimizer.pt trainer_state.json");
    sync_scan_release(&scan);
}

Test(sync_scan, a_unit_waits_until_it_has_settled, .init = make_folder, .fini = remove_folder)
{
    put("a/one", 1);
    put("b/two.log", 1);
    put("c/events.out.tfevents.1.host", 1);
    struct sync_scan scan = scan_of("", now(), 10 * (int64_t)SECOND);
    cr_assert_str_eq(units(&scan), "b/:1:ready c/:1:ready a/:1:changing", "logs never settle, and need not");
    sync_scan_release(&scan);
    scan = scan_of("", now() + 11 * (int64_t)SECOND, 10 * (int64_t)SECOND);
    cr_assert(strstr(units(&scan), "a/:1:ready"));
    sync_scan_release(&scan);
}

/* Each kind of checkpoint as its library leaves it half-written, and then whole. */
Test(sync_scan, a_checkpoint_without_its_last_file_is_incomplete, .init = make_folder, .fini = remove_folder)
{
    put("checkpoint-5/model.safetensors", 1);
    put("checkpoint-5/training_args.bin", 2);
    put("dcp/nested/__0_0.distcp", 1);
    put("final/training_args.bin", 1); /* save_model, of which trainer_state.json is no part */
    put("accelerate/checkpoint-5", 1);
    put("100.orbax-checkpoint-tmp-17/default/d/x", 1);
    struct sync_scan scan = scan_of("", now(), 0);
    const char *text = units(&scan);
    cr_assert(strstr(text, "checkpoint-5/:2:incomplete"), "%s", text);
    cr_assert(strstr(text, "dcp/:1:incomplete"), "%s", text);
    cr_assert(strstr(text, "final/:1:ready"), "%s", text);
    cr_assert_eq(scan.unit_count, 4, "Orbax renames the folder when it is complete: %s", text);
    sync_scan_release(&scan);
    put("checkpoint-5/trainer_state.json", 3);
    put("dcp/nested/.metadata", 3);
    scan = scan_of("", now(), 0);
    text = units(&scan);
    cr_assert(strstr(text, "checkpoint-5/:3:ready") && strstr(text, "dcp/:2:ready"), "%s", text);
    sync_scan_release(&scan);
}

Test(sync_scan, unfinished_files_and_links_are_left_out, .init = make_folder, .fini = remove_folder)
{
    put("tmp-checkpoint-5/x", 1);
    put("a/.metadata.tmp", 1);
    put("a/.partial-7", 1);
    put("a/x.incomplete.part", 1);
    put("a/line\nbreak", 1);
    put("a/whole", 1);
    SCOPED_FREE char *link = memory_format("%s/link", folder);
    cr_assert_eq(symlink("/etc/passwd", link), 0);
    struct sync_scan scan = scan_of("", now(), 0);
    cr_assert_str_eq(units(&scan), "a/:1:ready");
    cr_assert_not_null(sync_scan_find(&scan, "a/whole"));
    cr_assert_null(sync_scan_find(&scan, "link"));
    sync_scan_release(&scan);
}

Test(sync_scan, a_folder_that_cannot_be_read_is_no_empty_one)
{
    struct sync_scan scan;
    struct error error = ERROR_INIT;
    cr_assert_lt(sync_scan("/tmp/no-such-folder-of-sync", "", now(), 0, &scan, &error), 0,
                 "otherwise its objects would be removed");
    sync_scan_release(&scan);
}

Test(sync_scan, the_folder_of_the_sidecar_itself_is_left_out, .init = make_folder, .fini = remove_folder)
{
    put(".coxswain-sync/writers/9", 1);
    put("a/.coxswain-sync/x", 1);
    put("a/train.log", 1);
    struct sync_scan scan = scan_of("", now(), 0);
    cr_assert_str_eq(units(&scan), "a/:2:ready");
    cr_assert(sync_scan_has_folder(&scan, "a/.coxswain-sync"));
    cr_assert_not(sync_scan_has_folder(&scan, "a"), "it has only a log");
    sync_scan_release(&scan);
}
