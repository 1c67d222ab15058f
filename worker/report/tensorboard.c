/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/report/tensorboard.h"

#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/clock.h"
#include "common/crc32c.h"
#include "common/memory.h"
#include "worker/checkpoint/file.h"
#include "worker/report/event_writer.h"

#define RECORD_MAX 65536
#define FILE_VERSION "brain.Event:2"

/* Field numbers of Event, Summary and Summary.Value. */
enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_SUMMARY = 5 };
enum { SUMMARY_VALUE = 1 };
enum { VALUE_TAG = 1, VALUE_SIMPLE = 2 };
enum wire_type { WIRE_VARINT = 0, WIRE_DOUBLE = 1, WIRE_BYTES = 2, WIRE_FLOAT = 5 };

struct tensorboard {
    char *path;
    struct event_writer *writer;
    struct buffer record, event, summary, value;
};

/* ---- protocol buffer encoding; the buffers' ceilings are far above what a step needs */

static int put_varint(struct buffer *out, uint64_t number, struct error *error)
{
    do {
        unsigned char byte = (unsigned char)((number & 0x7f) | (number > 0x7f ? 0x80 : 0));
        if (buffer_append_byte(out, (char)byte, error) < 0)
            return -1;
        number >>= 7;
    } while (number > 0);
    return 0;
}

static int put_key(struct buffer *out, unsigned field, enum wire_type type, struct error *error)
{
    return put_varint(out, (uint64_t)field << 3 | type, error);
}

static int put_bytes(struct buffer *out, unsigned field, const void *bytes, size_t length, struct error *error)
{
    if (put_key(out, field, WIRE_BYTES, error) < 0 || put_varint(out, length, error) < 0)
        return -1;
    return buffer_append(out, bytes, length, error);
}

static int put_double(struct buffer *out, unsigned field, double number, struct error *error)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    bits = htole64(bits);
    if (put_key(out, field, WIRE_DOUBLE, error) < 0)
        return -1;
    return buffer_append(out, &bits, sizeof bits, error);
}

static int put_float(struct buffer *out, unsigned field, float number, struct error *error)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    bits = htole32(bits);
    if (put_key(out, field, WIRE_FLOAT, error) < 0)
        return -1;
    return buffer_append(out, &bits, sizeof bits, error);
}

static int put_scalar(struct tensorboard *board, const struct tensorboard_scalar *scalar, struct error *error)
{
    buffer_clear(&board->value);
    if (put_bytes(&board->value, VALUE_TAG, scalar->tag, strlen(scalar->tag), error) < 0 ||
        put_float(&board->value, VALUE_SIMPLE, (float)scalar->value, error) < 0)
        return -1;
    return put_bytes(&board->summary, SUMMARY_VALUE, board->value.data, board->value.length, error);
}

/* ---- record framing */

/* The rotation that TFRecord applies, so that a CRC of data that holds CRCs stays useful. */
static uint32_t masked_crc(const void *bytes, size_t length)
{
    uint32_t crc = crc32c(0, bytes, length);
    return htole32((crc >> 15 | crc << 17) + 0xa282ead8u);
}

static int put_record(struct tensorboard *board, struct error *error)
{
    uint64_t length = htole64(board->event.length);
    uint32_t length_crc = masked_crc(&length, sizeof length);
    uint32_t data_crc = masked_crc(board->event.data, board->event.length);
    buffer_clear(&board->record);
    if (buffer_append(&board->record, &length, sizeof length, error) < 0 ||
        buffer_append(&board->record, &length_crc, sizeof length_crc, error) < 0 ||
        buffer_append(&board->record, board->event.data, board->event.length, error) < 0 ||
        buffer_append(&board->record, &data_crc, sizeof data_crc, error) < 0)
        return -1;
    if (event_writer_append(board->writer, board->record.data, board->record.length, error) < 0)
        return error_wrap(error, "%s", board->path);
    return 0;
}

static int start_event(struct tensorboard *board, struct error *error)
{
    buffer_clear(&board->event);
    return put_double(&board->event, EVENT_WALL_TIME, (double)clock_now_ms() / 1000.0, error);
}

/* ---- the file */

static struct tensorboard *board_new(char *path)
{
    struct tensorboard *board = memory_allocate(1, sizeof *board);
    board->path = path;
    buffer_init(&board->record, RECORD_MAX + 16);
    buffer_init(&board->event, RECORD_MAX);
    buffer_init(&board->summary, RECORD_MAX);
    buffer_init(&board->value, RECORD_MAX);
    return board;
}

static int put_file_version(struct tensorboard *board, struct error *error)
{
    if (start_event(board, error) < 0 ||
        put_bytes(&board->event, EVENT_FILE_VERSION, FILE_VERSION, strlen(FILE_VERSION), error) < 0)
        return -1;
    return put_record(board, error);
}

static int open_file(struct tensorboard *board, struct error *error)
{
    int descriptor = file_calls.open(board->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (descriptor < 0)
        return error_set_errno(error, "cannot create %s", board->path);
    if (event_writer_new(descriptor, &board->writer, error) < 0 || put_file_version(board, error) < 0)
        return -1;
    return tensorboard_flush(board, error);
}

int tensorboard_open(const char *directory, struct tensorboard **ret_board, struct error *error)
{
    char host[128] = "";
    gethostname(host, sizeof host - 1);
    if (file_make_directories(directory, error) < 0)
        return error_wrap(error, "TensorBoard directory");
    struct tensorboard *board = board_new(memory_format("%s/events.out.tfevents.%lld.%s.%ld", directory,
                                                        (long long)(clock_now_ms() / 1000), host, (long)getpid()));
    if (open_file(board, error) < 0) {
        tensorboard_free(board, 0);
        return -1;
    }
    *ret_board = board;
    return 0;
}

bool tensorboard_free(struct tensorboard *board, int64_t ms)
{
    bool is_there = board->writer == NULL || event_writer_free(board->writer, ms);
    buffer_release(&board->record);
    buffer_release(&board->event);
    buffer_release(&board->summary);
    buffer_release(&board->value);
    free(board->path);
    free(board);
    return is_there;
}

int tensorboard_append(struct tensorboard *board, int64_t step, const struct tensorboard_scalar *scalars,
                       unsigned count, struct error *error)
{
    buffer_clear(&board->summary);
    for (unsigned i = 0; i < count; i++)
        if (put_scalar(board, &scalars[i], error) < 0)
            return -1;
    if (start_event(board, error) < 0 || put_key(&board->event, EVENT_STEP, WIRE_VARINT, error) < 0 ||
        put_varint(&board->event, (uint64_t)step, error) < 0 ||
        put_bytes(&board->event, EVENT_SUMMARY, board->summary.data, board->summary.length, error) < 0)
        return -1;
    return put_record(board, error);
}

int tensorboard_flush(struct tensorboard *board, struct error *error)
{
    return event_writer_flush(board->writer, error) < 0 ? error_wrap(error, "%s", board->path) : 0;
}

bool tensorboard_settle(struct tensorboard *board, int64_t ms)
{
    return event_writer_settle(board->writer, ms);
}

int64_t tensorboard_left_out(struct tensorboard *board)
{
    return event_writer_left_out(board->writer);
}
