/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/checkpoint/part.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/memory.h"
#include "common/scope.h"
#include "tests/unit/worker/checkpoint/held_disk.h"
#include "worker/checkpoint/commit.h"
#include "worker/checkpoint/file.h"

static const float values[] = {1, 2, 3};

static const struct safetensors_tensor tensor = {
    .name = "a", .dtype = SAFETENSORS_F32, .shape = {3}, .rank = 1, .data = values, .bytes = sizeof values};

static char directory[32];
static struct part_writer *writer;
static struct error error;

static void open_directory(void)
{
    snprintf(directory, sizeof directory, "/tmp/coxswain-part-XXXXXX");
    cr_assert(mkdtemp(directory));
    writer = part_writer_new(directory, NULL);
    error = (struct error)ERROR_INIT;
}

static void close_directory(void)
{
    if (writer)
        part_writer_free(writer);
    writer = NULL;
    file_remove_directory(directory, NULL);
}

TestSuite(part, .init = open_directory, .fini = close_directory);

static void expect_nothing_left(void)
{
    part_writer_free(writer);
    writer = NULL;
    cr_expect_eq(rmdir(directory), 0, "something was left behind");
}

#define PATIENCE(...) ((struct checkpoint_parts_patience){__VA_ARGS__})

/* Without `given_up`: the chief does not give up. */
static int collect(const struct checkpoint_part_key *key, unsigned ranks, struct checkpoint_parts_patience patience)
{
    static atomic_bool never;
    SCOPED_FREE char *saving = file_path_join(directory, ".saving");
    struct manifest manifest = {0};
    if (!patience.given_up)
        patience.given_up = &never;
    error = (struct error)ERROR_INIT;
    cr_assert_eq(file_make_directories(saving, NULL), 0);
    int result = checkpoint_parts_collect(directory, saving, key, ranks, &patience, &manifest, &error);
    free(manifest.files);
    file_remove_directory(saving, NULL);
    return result;
}

/* What is there is taken all the same. */
static int collect_at_once(const struct checkpoint_part_key *key, unsigned ranks)
{
    static atomic_bool given_up = true;
    return collect(key, ranks, PATIENCE(.given_up = &given_up));
}

static void save_with(struct part_writer *by, const struct checkpoint_part_key *key)
{
    cr_assert_eq(part_writer_save(by, key, &tensor, 1, NULL), 0);
    cr_assert_eq(part_writer_wait(by, NULL), 0);
}

static void save(const struct checkpoint_part_key *key)
{
    save_with(writer, key);
}

Test(part, a_part_moves_into_the_checkpoint_with_its_digest)
{
    SCOPED_FREE char *saving = file_path_join(directory, ".saving");
    cr_assert_eq(file_make_directories(saving, NULL), 0);
    const struct checkpoint_part_key older = {1, 2, 3, 10, 1}, key = {1, 2, 4, 10, 1};
    save(&older);
    save(&key);
    cr_expect(part_writer_has_begun(writer, &key) && !part_writer_has_begun(writer, &older));
    atomic_bool given_up = true;
    const struct checkpoint_parts_patience patience = {.given_up = &given_up};
    struct manifest manifest = {0};
    cr_expect_eq(checkpoint_parts_collect(directory, saving, &older, 2, &patience, &manifest, &error), -1);
    cr_expect_eq(error.kind, ERROR_CANCELLED, "the part of an older generation is gone: %s", error.message);
    cr_assert_eq(checkpoint_parts_collect(directory, saving, &key, 2, &patience, &manifest, &error), 0, "%s",
                 error.message);
    SCOPED_FREE char *path = file_path_join(saving, manifest.files[0].name);
    uint32_t crc;
    int64_t bytes;
    cr_assert_eq(file_digest(path, &crc, &bytes, NULL), 0);
    cr_expect(manifest.file_count == 1 && crc == manifest.files[0].crc32c && bytes == manifest.files[0].bytes);
    free(manifest.files);
    file_remove_directory(saving, NULL);
    expect_nothing_left();
}

static enum checkpoint_rank_fate fate_of_rank_1;

static enum checkpoint_rank_fate fate(void *context, const struct checkpoint_part_key *key)
{
    (void)context;
    return key->rank == 1 ? fate_of_rank_1 : RANK_STAYS;
}

/* To wait for it takes two minutes, which is more than the test has. */
static void expect_no_wait(enum checkpoint_rank_fate fate_of_1, const char *words)
{
    const struct checkpoint_part_key key = {1, 2, 3, 10, 2};
    save(&key);
    fate_of_rank_1 = fate_of_1;
    cr_expect_eq(collect(&key, 3, PATIENCE(.ask = fate)), -1);
    cr_expect_eq(error.kind, ERROR_UNAVAILABLE);
    cr_expect(strstr(error.message, words) && strstr(error.message, "step 10"), "%s", error.message);
}

Test(part, a_lost_ranks_part_is_not_waited_for, .timeout = 120)
{
    expect_no_wait(RANK_IS_LOST, "rank 1 was lost before");
}

Test(part, that_a_rank_has_not_begun_before_it_moved_on_is_not_waited_for, .timeout = 120)
{
    expect_no_wait(RANK_HAS_MOVED_ON, "rank 1 moved on to a newer generation");
}

static ssize_t (*plain_write)(int descriptor, const void *bytes, size_t length);
static int writes_left;

/* A volume that is full, until something is removed from it. */
static ssize_t write_until_full(int descriptor, const void *bytes, size_t length)
{
    if (writes_left-- > 0)
        return plain_write(descriptor, bytes, length);
    errno = ENOSPC;
    return -1;
}

static int (*plain_unlink)(const char *path);

static int unlink_makes_room(const char *path)
{
    int result = plain_unlink(path);
    writes_left += result == 0 ? 100 : 0;
    return result;
}

Test(part, that_could_not_be_written_says_why_at_once, .timeout = 120)
{
    const struct checkpoint_part_key key = {1, 2, 3, 10, 1};
    plain_write = file_calls.write;
    plain_unlink = file_calls.unlink;
    file_calls.write = write_until_full;
    file_calls.unlink = unlink_makes_room;
    cr_assert_eq(part_writer_save(writer, &key, &tensor, 1, NULL), 0);
    cr_expect_eq(part_writer_wait(writer, NULL), -1);
    file_calls.write = plain_write;
    file_calls.unlink = plain_unlink;
    cr_expect_eq(collect(&key, 2, PATIENCE(.wait_ms = 0)), -1);
    cr_expect(error.kind == ERROR_NO_SPACE && error.os_error == ENOSPC, "%s", error.message);
    cr_expect(strstr(error.message, "rank 1: ") && strstr(error.message, "No space left"), "%s", error.message);
}

static void name(void *context, unsigned rank, char text[CHECKPOINT_RANK_NAME_MAX])
{
    (void)context;
    snprintf(text, CHECKPOINT_RANK_NAME_MAX, "rank %u (worker %u, 10.0.0.7:2223)", rank, rank);
}

/* It is there, and does not write. */
Test(part, a_rank_that_is_frozen_in_a_commit_is_named_at_the_deadline, .timeout = 120)
{
    const struct checkpoint_part_key key = {1, 2, 3, 10, 1};
    fate_of_rank_1 = RANK_STAYS;
    cr_expect_eq(collect(&key, 2, PATIENCE(.ask = fate, .name = name, .wait_ms = 100)), -1);
    cr_expect_eq(error.kind, ERROR_TIMEOUT);
    cr_expect(strstr(error.message, "rank 1 (worker 1, 10.0.0.7:2223) has not written its part of step 10"), "%s",
              error.message);
}

struct slow_disk {
    char *part;
    unsigned looks; /* of the waiting chief */
    int64_t since_ns;
    bool is_read_back; /* all of it is written */
};

#define SLOW_WAIT_MS 50

static void get_on(const struct slow_disk *disk)
{
    FILE *file = fopen(disk->part, "a");
    const struct timespec now[] = {{.tv_sec = 1000 + disk->looks}, {.tv_sec = 1000 + disk->looks}};
    cr_assert(file != NULL);
    if (!disk->is_read_back)
        cr_assert_eq(fputc('x', file), 'x');
    cr_assert_eq(fclose(file), 0);
    if (disk->is_read_back)
        cr_assert_eq(utimensat(AT_FDCWD, disk->part, now, 0), 0);
}

/* The chief asks for the rank's state before it looks at the part's progress, so there is always progress. */
static enum checkpoint_rank_fate write_slowly(void *context, const struct checkpoint_part_key *key)
{
    (void)key;
    struct slow_disk *disk = context;
    get_on(disk);
    disk->looks++;
    bool long_since = clock_monotonic_ns() - disk->since_ns > 10 * SLOW_WAIT_MS * (int64_t)1000000;
    if (long_since && disk->looks >= 10) {
        SCOPED_FREE char *sum = memory_format("%s.sum", disk->part);
        cr_assert_eq(file_write(sum, "00000001 1\n", 11, NULL), 0);
    }
    return RANK_STAYS;
}

static void expect_wait(bool is_read_back)
{
    SCOPED_FREE char *saving = file_path_join(directory, ".saving");
    SCOPED_FREE char *part = file_path_join(directory, ".part-1.2.3-step-00000010-rank-00001");
    cr_assert_eq(file_make_directories(saving, NULL), 0);
    const struct checkpoint_part_key key = {1, 2, 3, 10, 1};
    struct slow_disk disk = {.part = part, .since_ns = clock_monotonic_ns(), .is_read_back = is_read_back};
    cr_expect_eq(collect(&key, 2, PATIENCE(.ask = write_slowly, .context = &disk, .wait_ms = SLOW_WAIT_MS)), 0, "%s",
                 error.message);
}

Test(part, that_grows_is_waited_for_however_long_it_takes, .timeout = 120)
{
    expect_wait(false);
}

Test(part, that_is_read_back_is_waited_for_however_long_it_takes, .timeout = 120)
{
    expect_wait(true);
}

/* One of the same step that another crew has called for, or of another step, is none of ours. */
Test(part, a_call_for_parts_is_for_that_boundary_of_that_crew)
{
    const struct checkpoint_part_key called = {1, 2, 3, 10, 1}, same = {1, 2, 3, 10, 0}, later = {1, 2, 3, 11, 1},
                                     newer = {1, 2, 4, 10, 1};
    cr_expect_not(checkpoint_parts_are_called(directory, &called));
    cr_assert_eq(checkpoint_parts_call(directory, &called, NULL), 0);
    cr_expect(checkpoint_parts_are_called(directory, &same), "whoever looks");
    cr_expect_not(checkpoint_parts_are_called(directory, &later));
    cr_expect_not(checkpoint_parts_are_called(directory, &newer));
    cr_assert_eq(checkpoint_remove_leftovers(directory, NULL), 0);
    cr_expect_eq(rmdir(directory), 0, "the next chief sweeps it away");
}

static void stop_waiting(void *context, const char *rank, int64_t step, int64_t waited_ms)
{
    static unsigned told;
    cr_expect(strcmp(rank, "rank 1 (worker 1, 10.0.0.7:2223)") == 0 && step == 10 && waited_ms >= 20);
    if (++told == 2)
        atomic_store((atomic_bool *)context, true);
}

Test(part, that_is_long_in_coming_is_told_before_the_deadline, .timeout = 60)
{
    atomic_bool given_up = false;
    const struct checkpoint_part_key key = {1, 2, 3, 10, 1};
    cr_expect_eq(collect(&key, 2,
                         PATIENCE(.given_up = &given_up, .name = name, .report_late = stop_waiting,
                                  .context = &given_up, .late_ms = 20)),
                 -1);
    cr_expect_eq(error.kind, ERROR_CANCELLED, "%s", error.message);
}

/* ---- one save after another */

Test(part, a_writer_is_busy_until_its_part_is_on_the_disk, .timeout = 60)
{
    const struct checkpoint_part_key key = {1, 2, 3, 10, 1};
    cr_expect_not(part_writer_is_busy(writer));
    held_disk_hold();
    cr_assert_eq(part_writer_save(writer, &key, &tensor, 1, NULL), 0);
    cr_expect(part_writer_is_busy(writer));
    held_disk_let_go();
    cr_assert_eq(part_writer_wait(writer, NULL), 0);
    cr_expect_not(part_writer_is_busy(writer));
    held_disk_end();
}

/* The chief is at its older save still, and the rank at its last. */
Test(part, the_part_before_the_last_is_still_there_to_be_taken, .timeout = 60)
{
    const struct checkpoint_part_key keys[] = {{1, 2, 3, 10, 1}, {1, 2, 3, 20, 1}, {1, 2, 3, 30, 1}};
    for (unsigned i = 0; i < 3; i++)
        save(&keys[i]);
    cr_expect_eq(collect_at_once(&keys[0], 2), -1, "no more than two are kept");
    cr_expect_eq(collect_at_once(&keys[1], 2), 0);
    cr_expect_eq(collect_at_once(&keys[2], 2), 0);
    expect_nothing_left();
}

Test(part, that_belongs_to_a_failed_save_waits_for_the_next_of_that_step, .timeout = 60)
{
    const struct checkpoint_part_key keys[] = {{1, 2, 3, 10, 1}, {1, 2, 3, 10, 2}};
    struct part_writer *second = part_writer_new(directory, NULL);
    save(&keys[0]);
    cr_expect_eq(collect_at_once(&keys[0], 3), -1);
    save_with(second, &keys[1]);
    cr_expect_eq(collect_at_once(&keys[0], 3), 0);
    save(&keys[0]);
    checkpoint_parts_remove(directory, &keys[0], 3);
    part_writer_free(second);
    expect_nothing_left();
}

Test(part, that_there_is_no_memory_to_copy_says_so_at_once, .timeout = 60)
{
    struct safetensors_tensor huge = tensor;
    huge.bytes = (size_t)1 << 60;
    const struct checkpoint_part_key key = {1, 2, 3, 10, 1};
    cr_expect_eq(part_writer_save(writer, &key, &huge, 1, &error), -1);
    cr_expect_eq(error.kind, ERROR_NO_SPACE);
    cr_expect_eq(collect_at_once(&key, 2), -1);
    cr_expect(strstr(error.message, "rank 1: ") && strstr(error.message, "no memory"), "%s", error.message);
}
