/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/log_queue.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "operator/cli/log_position.h"

struct log_line {
    struct log_line *next;
    int64_t came_ms;
    size_t length;
    char text[];
};

struct log_stream {
    struct log_queue *queue;
    struct log_stream *next;
    char speaker[LOG_SPEAKER_MAX];
    bool closed;
    struct buffer incomplete; /* the beginning of a line whose end has not come yet */
    struct log_position position;
    struct log_line *first, **last;
};

struct log_queue {
    struct log_style style;
    struct log_stream *streams;
    size_t held; /* bytes */
};

struct log_queue *log_queue_new(const struct log_style *style)
{
    struct log_queue *queue = memory_allocate(1, sizeof *queue);
    queue->style = *style;
    return queue;
}

static void stream_free(struct log_stream *stream)
{
    for (struct log_line *line = stream->first, *next; line; line = next) {
        next = line->next;
        free(line);
    }
    buffer_release(&stream->incomplete);
    free(stream);
}

void log_queue_free(struct log_queue *queue)
{
    for (struct log_stream *stream = queue->streams, *next; stream; stream = next) {
        next = stream->next;
        stream_free(stream);
    }
    free(queue);
}

struct log_stream *log_queue_open(struct log_queue *queue, const char *speaker)
{
    struct log_stream *stream = memory_allocate(1, sizeof *stream);
    *stream = (struct log_stream){.queue = queue, .next = queue->streams};
    stream->last = &stream->first;
    snprintf(stream->speaker, sizeof stream->speaker, "%s", speaker);
    buffer_init(&stream->incomplete, LOG_LINE_MAX);
    if (strlen(speaker) > queue->style.width)
        queue->style.width = (unsigned)strlen(stream->speaker);
    queue->streams = stream;
    return stream;
}

static void line_end(struct log_stream *stream, int64_t now_ms)
{
    size_t length = stream->incomplete.length;
    if (!log_position_take(&stream->position, length > 0 ? buffer_text(&stream->incomplete) : "", length)) {
        buffer_clear(&stream->incomplete);
        return;
    }
    struct log_line *line = memory_allocate(1, sizeof *line + length + 1);
    line->came_ms = now_ms;
    line->length = length;
    if (length > 0)
        memcpy(line->text, buffer_text(&stream->incomplete), length);
    *stream->last = line;
    stream->last = &line->next;
    stream->queue->held += length;
    buffer_clear(&stream->incomplete);
}

/* Ends a line that is too long; the rest follows as another line with the same time. */
static void line_break(struct log_stream *stream, int64_t now_ms)
{
    line_end(stream, now_ms);
    buffer_append_string(&stream->incomplete, stream->position.time, NULL);
    buffer_append_byte(&stream->incomplete, ' ', NULL);
}

int log_stream_append(struct log_stream *stream, const char *bytes, size_t length, int64_t now_ms, struct error *error)
{
    stream->closed = false;
    while (length > 0) {
        const char *newline = memchr(bytes, '\n', length);
        size_t part = newline ? (size_t)(newline - bytes) : length, room = LOG_LINE_MAX - 1 - stream->incomplete.length;
        bool fits = part <= room;
        part = fits ? part : room;
        if (buffer_append(&stream->incomplete, bytes, part, error) < 0)
            return -1;
        if (!fits)
            line_break(stream, now_ms);
        else if (newline)
            line_end(stream, now_ms);
        part += fits && newline;
        bytes += part;
        length -= part;
    }
    return 0;
}

void log_stream_cut(struct log_stream *stream)
{
    buffer_clear(&stream->incomplete);
    log_position_cut(&stream->position);
}

const struct log_position *log_stream_position(const struct log_stream *stream)
{
    return &stream->position;
}

size_t log_stream_incomplete_bytes(const struct log_stream *stream)
{
    return stream->incomplete.length;
}

void log_stream_close(struct log_stream *stream, int64_t now_ms)
{
    if (stream->incomplete.length > 0)
        line_end(stream, now_ms);
    stream->closed = true;
}

static struct log_text head_of(const struct log_stream *stream)
{
    return (struct log_text){.text = stream->first->text, .end = stream->first->text + stream->first->length};
}

static bool is_earlier(const struct log_stream *left, const struct log_stream *right)
{
    const struct log_text a = head_of(left), b = head_of(right);
    return log_time_compare(&a, &b) < 0;
}

static void print_head(struct log_queue *queue, struct log_stream *stream, struct buffer *out)
{
    struct log_line *line = stream->first;
    log_line_print(&queue->style, stream->speaker, line->text, line->length, out);
    stream->first = line->next;
    if (!stream->first)
        stream->last = &stream->first;
    queue->held -= line->length;
    free(line);
}

/* If a line is overdue, all earlier lines are returned as well. */
bool log_queue_next(struct log_queue *queue, int64_t now_ms, struct buffer *out)
{
    struct log_stream *earliest = NULL;
    bool awaited = false;
    for (struct log_stream *stream = queue->streams; stream; stream = stream->next) {
        if (stream->first && (!earliest || is_earlier(stream, earliest)))
            earliest = stream;
        awaited |= !stream->first && !stream->closed;
    }
    if (!earliest || (awaited && queue->held <= LOG_HELD_MAX && now_ms < log_queue_due_ms(queue)))
        return false;
    print_head(queue, earliest, out);
    return true;
}

int64_t log_queue_due_ms(const struct log_queue *queue)
{
    int64_t due_ms = -1;
    for (const struct log_stream *stream = queue->streams; stream; stream = stream->next)
        if (stream->first && (due_ms < 0 || stream->first->came_ms + LOG_HOLD_MS < due_ms))
            due_ms = stream->first->came_ms + LOG_HOLD_MS;
    return due_ms;
}
