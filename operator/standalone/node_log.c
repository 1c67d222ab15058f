/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/standalone/node_log.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/memory.h"

#define READ_CHUNK (64 * 1024)
#define FOLLOWER_PENDING_MAX (2 * CONTAINER_LOG_MAX)
/* "2026-11-20T14:00:00.123456789Z stdout F " */
#define TIMESTAMP_LENGTH 30
#define PREFIX_LENGTH (TIMESTAMP_LENGTH + 10)

struct follower {
    struct container_log *log;
    struct http_stream *stream;
    struct log_cursor *cursor;
    struct follower *next;
};

struct container_log {
    char *path;
    int file;
    size_t size;
    struct buffer unfinished[2]; /* by stream: a line without its end */
    struct follower *followers;
};

/* ---------------------------------------------------------------- reading */

/* Where a reader stands in a file, and what it wants of it. */
struct log_cursor {
    int file;
    struct buffer line;
    bool timestamps;
    int64_t since_ms;
    int64_t bytes_left; /* -1: no limit */
};

static void cursor_free(struct log_cursor *cursor)
{
    if (cursor->file >= 0)
        close(cursor->file);
    buffer_release(&cursor->line);
    free(cursor);
}
DEFINE_SCOPE_FREE(struct log_cursor *, cursor_free)

/* Offset of the last `lines` lines of a file. */
static off_t tail_offset(int file, off_t size, int64_t lines)
{
    char chunk[READ_CHUNK];
    off_t end = size;
    while (end > 0) {
        off_t start = end > READ_CHUNK ? end - READ_CHUNK : 0;
        ssize_t length = pread(file, chunk, (size_t)(end - start), start);
        for (ssize_t i = length - 1; i >= 0; i--) {
            if (chunk[i] == '\n' && start + i + 1 < size && --lines <= 0)
                return start + i + 1;
        }
        end = start;
    }
    return 0;
}

static int cursor_open(const char *path, const struct pod_log_query *query, struct log_cursor **ret_cursor,
                       struct error *error)
{
    SCOPED_CLOSE int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat about;
    if (file < 0 || fstat(file, &about) < 0)
        return error_set_errno(error, "open the log of container \"%s\"", query->container);
    if (query->tail_lines == 0)
        lseek(file, 0, SEEK_END);
    else if (query->tail_lines > 0)
        lseek(file, tail_offset(file, about.st_size, query->tail_lines), SEEK_SET);
    struct log_cursor *cursor = memory_allocate(1, sizeof *cursor);
    *cursor = (struct log_cursor){
        .file = file, .timestamps = query->timestamps, .since_ms = query->since_ms, .bytes_left = query->limit_bytes};
    buffer_init(&cursor->line, READ_CHUNK + CONTAINER_LOG_LINE_MAX + PREFIX_LENGTH);
    file = -1;
    *ret_cursor = cursor;
    return 0;
}

static bool is_recent(const struct log_cursor *cursor, const char *line)
{
    char text[TIMESTAMP_LENGTH + 1];
    int64_t time_ms;
    memcpy(text, line, TIMESTAMP_LENGTH);
    text[TIMESTAMP_LENGTH] = '\0';
    return cursor->since_ms == 0 || !clock_parse(text, &time_ms) || time_ms >= cursor->since_ms;
}

static int put(struct log_cursor *cursor, struct buffer *out, const char *bytes, size_t length, struct error *error)
{
    if (cursor->bytes_left >= 0 && (int64_t)length > cursor->bytes_left)
        length = (size_t)cursor->bytes_left;
    if (cursor->bytes_left >= 0)
        cursor->bytes_left -= (int64_t)length;
    return buffer_append(out, bytes, length, error);
}

/* `line` has its newline. */
static int put_line(struct log_cursor *cursor, struct buffer *out, const char *line, size_t length, struct error *error)
{
    if (length < PREFIX_LENGTH + 1 || !is_recent(cursor, line))
        return 0;
    bool partial = line[PREFIX_LENGTH - 2] == 'P';
    if (cursor->timestamps && put(cursor, out, line, TIMESTAMP_LENGTH + 1, error) < 0)
        return -1;
    return put(cursor, out, line + PREFIX_LENGTH, length - PREFIX_LENGTH - partial, error);
}

static int put_lines(struct log_cursor *cursor, struct buffer *out, struct error *error)
{
    const char *text = buffer_text(&cursor->line), *end;
    const char *at = text;
    while ((end = memchr(at, '\n', cursor->line.length - (size_t)(at - text)))) {
        if (put_line(cursor, out, at, (size_t)(end - at) + 1, error) < 0)
            return -1;
        at = end + 1;
    }
    buffer_consume(&cursor->line, (size_t)(at - text));
    return 0;
}

/* Appends everything that is in the log now. */
static int cursor_read(struct log_cursor *cursor, struct buffer *out, struct error *error)
{
    char chunk[READ_CHUNK];
    for (ssize_t length; (length = read(cursor->file, chunk, sizeof chunk)) > 0;) {
        if (buffer_append(&cursor->line, chunk, (size_t)length, error) < 0 || put_lines(cursor, out, error) < 0)
            return -1;
    }
    return 0;
}

int container_log_read(const char *path, const struct pod_log_query *query, struct buffer *out, struct error *error)
{
    SCOPED(cursor_free_scope) struct log_cursor *cursor = NULL;
    if (cursor_open(path, query, &cursor, error) < 0)
        return -1;
    return cursor_read(cursor, out, error);
}

/* ---------------------------------------------------------------- following */

static void follower_free(struct follower *follower)
{
    cursor_free(follower->cursor);
    free(follower);
}

/* Called by the server: the reader left, or all was flushed after our own close. */
static void follower_closed(void *context)
{
    struct follower *follower = context;
    if (follower->log) {
        struct follower **link = &follower->log->followers;
        while (*link && *link != follower)
            link = &(*link)->next;
        if (*link)
            *link = follower->next;
    }
    follower_free(follower);
}

/* May end (and free) the follower. */
static void follower_serve(struct follower *follower)
{
    SCOPED_BUFFER out = BUFFER_INIT(FOLLOWER_PENDING_MAX);
    if (cursor_read(follower->cursor, &out, NULL) < 0)
        return;
    if (out.length > 0)
        http_stream_write(follower->stream, out.data, out.length);
}

static void followers_serve(struct container_log *log)
{
    for (struct follower *follower = log->followers, *next; follower; follower = next) {
        next = follower->next;
        follower_serve(follower);
    }
}

int container_log_follow(struct container_log *log, const struct pod_log_query *query, struct http_exchange *exchange,
                         struct error *error)
{
    struct log_cursor *cursor = NULL;
    if (cursor_open(log->path, query, &cursor, error) < 0)
        return -1;
    struct follower *follower = memory_allocate(1, sizeof *follower);
    *follower = (struct follower){.log = log, .cursor = cursor, .next = log->followers};
    log->followers = follower;
    follower->stream =
        http_exchange_stream(exchange, 200, "text/plain", FOLLOWER_PENDING_MAX, follower_closed, follower);
    follower_serve(follower);
    return 0;
}

/* ---------------------------------------------------------------- writing */

static int file_open(struct container_log *log, struct error *error)
{
    struct stat about;
    log->file = open(log->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    if (log->file < 0 || fstat(log->file, &about) < 0)
        return error_set_errno(error, "open %s", log->path);
    log->size = (size_t)about.st_size;
    return 0;
}

int container_log_open(const char *path, struct container_log **ret_log, struct error *error)
{
    struct container_log *log = memory_allocate(1, sizeof *log);
    log->path = memory_copy_string(path);
    for (int i = 0; i < 2; i++)
        buffer_init(&log->unfinished[i], CONTAINER_LOG_LINE_MAX);
    if (file_open(log, error) < 0) {
        container_log_free(log);
        return -1;
    }
    *ret_log = log;
    return 0;
}

static void rotate(struct container_log *log)
{
    SCOPED_FREE char *older = memory_format("%s.1", log->path);
    if (rename(log->path, older) < 0)
        return;
    close(log->file);
    if (file_open(log, NULL) < 0)
        return;
    for (struct follower *follower = log->followers; follower; follower = follower->next) {
        close(follower->cursor->file);
        follower->cursor->file = open(log->path, O_RDONLY | O_CLOEXEC);
    }
}

static void stamp(char text[TIMESTAMP_LENGTH + 1])
{
    struct timespec now;
    struct tm parts;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    size_t length = strftime(text, TIMESTAMP_LENGTH + 1, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text + length, TIMESTAMP_LENGTH + 1 - length, ".%09ldZ", now.tv_nsec);
}

static void put_record(struct buffer *records, const char *time, enum process_stream stream, char tag,
                       const char *bytes, size_t length)
{
    buffer_format(records, "%s %s %c ", time, stream == PROCESS_STDOUT ? "stdout" : "stderr", tag);
    buffer_append(records, bytes, length, NULL);
    buffer_append_byte(records, '\n', NULL);
}

/* Cuts into lines, and lines into parts; what is left waits for its end. */
static void collect(struct container_log *log, enum process_stream stream, const char *bytes, size_t length,
                    struct buffer *records)
{
    char time[TIMESTAMP_LENGTH + 1];
    struct buffer *line = &log->unfinished[stream];
    stamp(time);
    while (length > 0) {
        const char *end = memchr(bytes, '\n', length);
        size_t part = end ? (size_t)(end - bytes) : length;
        size_t room = CONTAINER_LOG_LINE_MAX - line->length;
        bool whole = end && part <= room;
        if (part > room)
            part = room;
        buffer_append(line, bytes, part, NULL);
        if (whole || line->length == CONTAINER_LOG_LINE_MAX) {
            put_record(records, time, stream, whole ? 'F' : 'P', buffer_text(line), line->length);
            buffer_clear(line);
        }
        bytes += part + whole;
        length -= part + whole;
    }
}

/* A full disk must not end the container: what cannot be written is lost. */
static void write_records(struct container_log *log, const struct buffer *records)
{
    for (size_t done = 0; done < records->length;) {
        ssize_t length = write(log->file, records->data + done, records->length - done);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0)
            return;
        done += (size_t)length;
    }
    log->size += records->length;
    followers_serve(log);
    if (log->size >= CONTAINER_LOG_MAX)
        rotate(log);
}

void container_log_append(struct container_log *log, enum process_stream stream, const char *bytes, size_t length)
{
    SCOPED_BUFFER records = BUFFER_INIT(SIZE_MAX / 2);
    collect(log, stream, bytes, length, &records);
    if (records.length > 0)
        write_records(log, &records);
}

static void flush(struct container_log *log)
{
    SCOPED_BUFFER records = BUFFER_INIT(SIZE_MAX / 2);
    char time[TIMESTAMP_LENGTH + 1];
    stamp(time);
    for (enum process_stream stream = PROCESS_STDOUT; stream <= PROCESS_STDERR; stream++) {
        struct buffer *line = &log->unfinished[stream];
        if (line->length > 0)
            put_record(&records, time, stream, 'P', buffer_text(line), line->length);
    }
    if (records.length > 0)
        write_records(log, &records);
}

void container_log_free(struct container_log *log)
{
    if (log->file >= 0)
        flush(log);
    for (struct follower *follower = log->followers, *next; follower; follower = next) {
        next = follower->next;
        follower->log = NULL;
        http_stream_close(follower->stream);
    }
    for (int i = 0; i < 2; i++)
        buffer_release(&log->unfinished[i]);
    if (log->file >= 0)
        close(log->file);
    free(log->path);
    free(log);
}
