/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes what was written by the format's own rules.
 */
#include "worker/report/tensorboard.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/crc32c.h"
#include "worker/checkpoint/file.h"

#define PATIENCE_MS 60000 /* reached by what hangs only */

struct reader {
    const unsigned char *next, *end;
};

static uint64_t read_varint(struct reader *reader)
{
    uint64_t number = 0;
    for (int shift = 0;; shift += 7) {
        cr_assert_lt(reader->next, reader->end);
        unsigned char byte = *reader->next++;
        number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return number;
    }
}

static uint32_t unmask(uint32_t masked)
{
    uint32_t rotated = masked - 0xa282ead8u;
    return rotated >> 17 | rotated << 15;
}

/* One record's bytes, both digests checked. */
static struct reader read_record(struct reader *file)
{
    uint64_t length;
    uint32_t crc;
    cr_assert_geq(file->end - file->next, 12);
    memcpy(&length, file->next, 8);
    memcpy(&crc, file->next + 8, 4);
    cr_assert_eq(unmask(crc), crc32c(0, file->next, 8));
    struct reader record = {file->next + 12, file->next + 12 + length};
    cr_assert_leq(record.end + 4, file->end);
    memcpy(&crc, record.end, 4);
    cr_assert_eq(unmask(crc), crc32c(0, record.next, length));
    file->next = record.end + 4;
    return record;
}

/* The bytes of the field, which must come next. */
static struct reader read_bytes(struct reader *record, unsigned field)
{
    cr_assert_eq(read_varint(record), field << 3 | 2);
    uint64_t length = read_varint(record);
    struct reader bytes = {record->next, record->next + length};
    record->next += length;
    return bytes;
}

static void skip_wall_time(struct reader *record)
{
    cr_assert_eq(read_varint(record), 1 << 3 | 1);
    double seconds;
    memcpy(&seconds, record->next, 8);
    cr_assert_gt(seconds, 1.6e9);
    record->next += 8;
}

static void expect_scalar(struct reader *summary, const char *tag, float value)
{
    struct reader entry = read_bytes(summary, 1);
    struct reader name = read_bytes(&entry, 1);
    cr_assert_eq((size_t)(name.end - name.next), strlen(tag));
    cr_assert_eq(memcmp(name.next, tag, strlen(tag)), 0);
    cr_assert_eq(read_varint(&entry), 2 << 3 | 5);
    float found;
    memcpy(&found, entry.next, 4);
    cr_assert_eq(found, value);
}

Test(tensorboard, events_decode)
{
    char directory[] = "/tmp/coxswain-board-XXXXXX", pattern[64];
    cr_assert_not_null(mkdtemp(directory));
    struct tensorboard *board;
    struct error error = ERROR_INIT;
    cr_assert_eq(tensorboard_open(directory, &board, &error), 0, "%s", error.message);
    const struct tensorboard_scalar scalars[] = {{"train/loss", 0.5}, {"train/learning_rate", 0.25}};
    cr_assert_eq(tensorboard_append(board, 300, scalars, 2, &error), 0, "%s", error.message);
    cr_expect(tensorboard_free(board, PATIENCE_MS));

    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/events.out.tfevents.*", directory);
    cr_assert_eq(glob(pattern, 0, NULL, &found), 0);
    cr_assert_eq(found.gl_pathc, 1);
    SCOPED_BUFFER bytes = BUFFER_INIT(1 << 20);
    cr_assert_eq(buffer_read_file(&bytes, found.gl_pathv[0], NULL), 0);
    struct reader file = {(unsigned char *)bytes.data, (unsigned char *)bytes.data + bytes.length};

    struct reader version = read_record(&file);
    skip_wall_time(&version);
    struct reader text = read_bytes(&version, 3);
    cr_assert_eq(memcmp(text.next, "brain.Event:2", 13), 0);

    struct reader event = read_record(&file);
    skip_wall_time(&event);
    cr_assert_eq(read_varint(&event), 2 << 3 | 0);
    cr_assert_eq(read_varint(&event), 300);
    struct reader summary = read_bytes(&event, 5);
    expect_scalar(&summary, "train/loss", 0.5f);
    expect_scalar(&summary, "train/learning_rate", 0.25f);
    cr_assert_eq(file.next, file.end);
    unlink(found.gl_pathv[0]);
    rmdir(directory);
    globfree(&found);
}

/* ---------------------------------------------------------------- a disk that hangs */

static atomic_bool disk_hangs;

static ssize_t write_or_hang(int descriptor, const void *bytes, size_t length)
{
    while (atomic_load(&disk_hangs))
        usleep(1000);
    return write(descriptor, bytes, length);
}

/* The call stays replaced: a writer that was given up may still be in it. */
static void free_disk(void)
{
    atomic_store(&disk_hangs, false);
}

static struct tensorboard *open_on_hanging_disk(const char *directory)
{
    struct tensorboard *board;
    struct error error = ERROR_INIT;
    file_calls.write = write_or_hang;
    cr_assert_eq(tensorboard_open(directory, &board, &error), 0, "%s", error.message);
    cr_assert(tensorboard_settle(board, PATIENCE_MS));
    atomic_store(&disk_hangs, true);
    return board;
}

static void append(struct tensorboard *board, int64_t step)
{
    const struct tensorboard_scalar scalar = {"train/loss", 0.5};
    struct error error = ERROR_INIT;
    cr_assert_eq(tensorboard_append(board, step, &scalar, 1, &error), 0, "%s", error.message);
    cr_assert_eq(tensorboard_flush(board, &error), 0, "%s", error.message);
}

/* Counts the events in the single event file there, and removes the file with its directory. */
static int64_t count_events(const char *directory)
{
    char pattern[64];
    glob_t found;
    SCOPED_BUFFER bytes = BUFFER_INIT(64 << 20);
    snprintf(pattern, sizeof pattern, "%s/events.out.tfevents.*", directory);
    cr_assert(glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc == 1);
    cr_assert_eq(buffer_read_file(&bytes, found.gl_pathv[0], NULL), 0);
    struct reader file = {(unsigned char *)bytes.data, (unsigned char *)bytes.data + bytes.length};
    int64_t events = 0;
    for (; file.next < file.end; events++)
        read_record(&file);
    unlink(found.gl_pathv[0]);
    rmdir(directory);
    globfree(&found);
    return events;
}

Test(tensorboard, appending_does_not_wait_for_the_disk_and_counts_dropped_events, .fini = free_disk)
{
    char directory[] = "/tmp/coxswain-board-XXXXXX";
    int64_t step = 0;
    cr_assert_not_null(mkdtemp(directory));
    struct tensorboard *board = open_on_hanging_disk(directory);
    while (tensorboard_left_out(board) == 0)
        append(board, ++step);
    for (int more = 0; more < 9; more++)
        append(board, ++step);
    int64_t left_out = tensorboard_left_out(board);
    cr_expect(left_out > 0 && left_out <= 10);
    cr_expect(!tensorboard_settle(board, 1));
    atomic_store(&disk_hangs, false);
    cr_expect(tensorboard_settle(board, PATIENCE_MS));
    append(board, ++step);
    cr_expect_eq(tensorboard_left_out(board), left_out);
    cr_expect(tensorboard_free(board, PATIENCE_MS));
    cr_expect_eq(count_events(directory), 1 + step - left_out);
}

Test(tensorboard, the_end_waits_for_the_disk_no_longer_than_it_is_told, .fini = free_disk)
{
    char directory[] = "/tmp/coxswain-board-XXXXXX";
    cr_assert_not_null(mkdtemp(directory));
    struct tensorboard *board = open_on_hanging_disk(directory);
    append(board, 1);
    cr_expect(!tensorboard_free(board, 1));
    cr_expect_eq(count_events(directory), 1);
}
