/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes what was written by the format's own rules.
 */
#include "worker/report/tensorboard.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/crc32c.h"

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
    tensorboard_free(board);

    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/events.out.tfevents.*", directory);
    cr_assert_eq(glob(pattern, 0, NULL, &found), 0);
    cr_assert_eq(found.gl_pathc, 1);
    SCOPED_BUFFER bytes;
    buffer_init(&bytes, 1 << 20);
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
