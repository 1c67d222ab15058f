/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/checkpoint/disk_file.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/crc32c.h"
#include "common/memory.h"
#include "common/scope.h"
#include "tests/unit/worker/checkpoint/directory.h"
#include "worker/checkpoint/file.h"

#define BYTES ((size_t)3 << 20)

/* Memory that begins at a block. */
static unsigned char *values;
static char *path;

static void prepare(void)
{
    values = aligned_alloc(DISK_FILE_BLOCK, BYTES + DISK_FILE_BLOCK);
    for (size_t i = 0; i < BYTES + DISK_FILE_BLOCK; i++)
        values[i] = (unsigned char)(i * 2654435761u >> 16);
    path = file_path_join(test_directory(), "file");
}

static void give_back(void)
{
    free(values);
    free(path);
}

TestSuite(disk_file, .init = prepare, .fini = give_back);

static void expect_written(const struct disk_file_span *spans, unsigned count, enum disk_file_way way)
{
    struct error error = ERROR_INIT;
    SCOPED_BUFFER found = BUFFER_INIT(2 * BYTES);
    uint32_t crc, crc_read;
    int64_t size, size_read;
    size_t at = 0;
    cr_assert_eq(disk_file_write(path, spans, count, way, &crc, &size, &error), 0, "%s", error.message);
    cr_assert_eq(buffer_read_file(&found, path, &error), 0, "%s", error.message);
    cr_assert_eq((int64_t)found.length, size);
    for (unsigned i = 0; i < count; at += spans[i++].length)
        cr_assert(spans[i].length == 0 || memcmp(found.data + at, spans[i].bytes, spans[i].length) == 0, "span %u", i);
    cr_assert_eq(at, found.length);
    cr_assert_eq(crc, crc32c(0, found.data, found.length));
    cr_assert_eq(disk_file_digest(path, &crc_read, &size_read, &error), 0, "%s", error.message);
    cr_assert(crc_read == crc && size_read == size);
}

static void expect_all(void)
{
    const struct disk_file_span cases[][4] = {
        {{values, 0}},
        {{values, 1}},
        {{values, BYTES}},
        {{values, BYTES - 1}},
        {{values + 1, BYTES}},
        /* A header as long as a block, and tensors one behind the other, as a snapshot has them. */
        {{values, 8}, {values + 8, DISK_FILE_BLOCK - 8}, {values, 1000001}, {values + 1000001, BYTES - 1000001}},
        /* And as they lie elsewhere. */
        {{values + 3, 70}, {values + 5000, 1 << 20}, {values + 7, 4097}, {values + DISK_FILE_BLOCK, 2 << 20}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (enum disk_file_way way = DISK_FILE_CACHED; way <= DISK_FILE_PAST_CACHE; way++)
            expect_written(cases[i], 4, way);
}

Test(disk_file, what_is_written_is_there_wherever_it_lay)
{
    expect_all();
}

/* ---- file systems with ways of their own */

static bool is_direct(int descriptor)
{
    return (fcntl(descriptor, F_GETFL) & O_DIRECT) != 0;
}

static ssize_t take_none_past_the_cache(int descriptor, const void *bytes, size_t length)
{
    if (is_direct(descriptor)) {
        errno = EINVAL;
        return -1;
    }
    return write(descriptor, bytes, length);
}

static ssize_t take_odd_pieces(int descriptor, const void *bytes, size_t length)
{
    return write(descriptor, bytes, is_direct(descriptor) && length > 12288 ? 8192 : length / 2 + 1);
}

Test(disk_file, what_takes_nothing_past_the_cache_takes_it_through)
{
    file_calls.write = take_none_past_the_cache;
    expect_all();
}

Test(disk_file, what_takes_less_than_asked_for_gets_the_rest)
{
    file_calls.write = take_odd_pieces;
    expect_all();
}

static ssize_t fill_up(int descriptor, const void *bytes, size_t length)
{
    (void)bytes;
    if (lseek(descriptor, 0, SEEK_CUR) > 0) {
        errno = ENOSPC;
        return -1;
    }
    return write(descriptor, bytes, length);
}

Test(disk_file, a_disk_that_is_full_is_told)
{
    const struct disk_file_span spans[] = {{values, DISK_FILE_BLOCK}, {values + 1, BYTES}};
    struct error error = ERROR_INIT;
    uint32_t crc;
    int64_t size;
    file_calls.write = fill_up;
    cr_expect_eq(disk_file_write(path, spans, 2, DISK_FILE_PAST_CACHE, &crc, &size, &error), -1);
    cr_expect_eq(error.kind, ERROR_NO_SPACE, "%s", error.message);
}

static unsigned direct, copies, in_place;

static ssize_t look_where_it_lies(int descriptor, const void *bytes, size_t length)
{
    const unsigned char *from = bytes;
    bool is_ours = from >= values && from < values + BYTES;
    direct += is_direct(descriptor);
    copies += is_direct(descriptor) && !is_ours && length > DISK_FILE_BLOCK;
    in_place += is_direct(descriptor) && is_ours && length >= (1 << 20);
    return write(descriptor, bytes, length);
}

Test(disk_file, what_lies_at_blocks_is_not_copied)
{
    const struct disk_file_span spans[] = {
        {values, 8}, {values + 8, DISK_FILE_BLOCK - 8}, {values, 1000001}, {values + 1000001, BYTES - 1000001}};
    file_calls.write = look_where_it_lies;
    expect_written(spans, 4, DISK_FILE_PAST_CACHE);
    cr_expect_eq(copies, 0);
    cr_expect(direct == 0 || in_place > 0); /* none at all where the directory is on no local disk */
}

/* ---- at the disk's pace */

static off_t taken, on_disk, furthest_ahead;

static ssize_t take_all(int descriptor, const void *bytes, size_t length)
{
    (void)descriptor, (void)bytes;
    taken += (off_t)length;
    if (taken - on_disk > furthest_ahead)
        furthest_ahead = taken - on_disk;
    return (ssize_t)length;
}

/* A file of many bursts, to take_all. */
static int write_long(int64_t *ret_size, struct error *error)
{
    struct disk_file_span spans[40];
    uint32_t crc;
    for (unsigned i = 0; i < 40; i++)
        spans[i] = (struct disk_file_span){values, BYTES};
    file_calls.write = take_all;
    return disk_file_write(path, spans, 40, DISK_FILE_CACHED, &crc, ret_size, error);
}

static int sync_what_is_asked_for(int descriptor, off_t from, off_t length, unsigned flags)
{
    (void)descriptor;
    if (!(flags & SYNC_FILE_RANGE_WAIT_AFTER))
        return 0;
    cr_assert_eq(from, on_disk, "nothing is left out");
    on_disk = from + length;
    return 0;
}

Test(disk_file, what_goes_through_the_cache_is_never_far_ahead_of_its_disk)
{
    struct error error = ERROR_INIT;
    int64_t size;
    file_calls.sync_range = sync_what_is_asked_for;
    cr_assert_eq(write_long(&size, &error), 0, "%s", error.message);
    cr_expect_eq(taken, size);
    cr_expect_leq(furthest_ahead, 40 << 20);
}

/* The kernel reports a page that could not be written only once, to the first call that waits for it. */
static int sync_told;

static int sync_of_a_dying_disk(int descriptor, off_t from, off_t length, unsigned flags)
{
    (void)descriptor, (void)from, (void)length;
    errno = sync_told;
    return flags & SYNC_FILE_RANGE_WAIT_AFTER ? -1 : 0;
}

static int write_to_it(int code)
{
    struct error error = ERROR_INIT;
    int64_t size;
    sync_told = code;
    file_calls.sync_range = sync_of_a_dying_disk;
    return write_long(&size, &error);
}

Test(disk_file, what_the_disk_could_not_take_on_the_way_is_told)
{
    cr_expect_eq(write_to_it(EIO), -1);
    cr_expect_eq(write_to_it(ENOSPC), -1);
    cr_expect_eq(write_to_it(ENOSYS), 0, "the sync at the end does it all");
}

static void set_size_and_age(off_t size)
{
    const struct timespec long_ago[] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    int descriptor = open(path, O_WRONLY | O_CREAT, 0644);
    cr_assert(descriptor >= 0 && ftruncate(descriptor, size) == 0 && futimens(descriptor, long_ago) == 0);
    close(descriptor);
}

Test(disk_file, reading_back_a_long_file_shows_progress)
{
    struct error error = ERROR_INIT;
    uint32_t crc;
    int64_t size;
    set_size_and_age(40 << 20);
    cr_assert_eq(file_digest(path, &crc, &size, NULL), 0);
    int64_t before = disk_file_progress(path);
    cr_expect_eq(disk_file_check(path, crc, size, &error), 0, "%s", error.message);
    cr_expect_neq(disk_file_progress(path), before);
    cr_expect_eq(disk_file_check(path, crc ^ 1, size, &error), -1);
    cr_expect_eq(error.kind, ERROR_CORRUPT, "%s", error.message);
}

Test(disk_file, writing_a_long_file_shows_progress)
{
    cr_expect_eq(disk_file_progress(path), -1);
    set_size_and_age(1);
    int64_t before = disk_file_progress(path);
    cr_expect_eq(disk_file_progress(path), before);
    set_size_and_age(2);
    cr_expect_neq(disk_file_progress(path), before);
}
