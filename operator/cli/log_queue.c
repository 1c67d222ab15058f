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

struct log_inlet {
    struct log_queue *queue;
    struct log_inlet *next;
    char speaker[LOG_SPEAKER_MAX];
    bool closed;
    struct buffer begun; /* a line that is not complete yet */
    struct log_position position;
    struct log_line *first, **last;
};

struct log_queue {
    struct log_style style;
    struct log_inlet *inlets;
    size_t held; /* bytes */
};

struct log_queue *log_queue_new(const struct log_style *style)
{
    struct log_queue *queue = memory_allocate(1, sizeof *queue);
    queue->style = *style;
    return queue;
}

static void inlet_free(struct log_inlet *inlet)
{
    for (struct log_line *line = inlet->first, *next; line; line = next) {
        next = line->next;
        free(line);
    }
    buffer_release(&inlet->begun);
    free(inlet);
}

void log_queue_free(struct log_queue *queue)
{
    for (struct log_inlet *inlet = queue->inlets, *next; inlet; inlet = next) {
        next = inlet->next;
        inlet_free(inlet);
    }
    free(queue);
}

struct log_inlet *log_queue_open(struct log_queue *queue, const char *speaker)
{
    struct log_inlet *inlet = memory_allocate(1, sizeof *inlet);
    *inlet = (struct log_inlet){.queue = queue, .next = queue->inlets};
    inlet->last = &inlet->first;
    snprintf(inlet->speaker, sizeof inlet->speaker, "%s", speaker);
    buffer_init(&inlet->begun, LOG_LINE_MAX);
    if (strlen(speaker) > queue->style.width)
        queue->style.width = (unsigned)strlen(inlet->speaker);
    queue->inlets = inlet;
    return inlet;
}

static void line_end(struct log_inlet *inlet, int64_t now_ms)
{
    size_t length = inlet->begun.length;
    if (!log_position_take(&inlet->position, length > 0 ? buffer_text(&inlet->begun) : "", length)) {
        buffer_clear(&inlet->begun);
        return;
    }
    struct log_line *line = memory_allocate(1, sizeof *line + length + 1);
    line->came_ms = now_ms;
    line->length = length;
    if (length > 0)
        memcpy(line->text, buffer_text(&inlet->begun), length);
    *inlet->last = line;
    inlet->last = &line->next;
    inlet->queue->held += length;
    buffer_clear(&inlet->begun);
}

/* Ends a line that is too long; the rest follows as another line with the same time. */
static void line_break(struct log_inlet *inlet, int64_t now_ms)
{
    line_end(inlet, now_ms);
    buffer_append_string(&inlet->begun, inlet->position.time, NULL);
    buffer_append_byte(&inlet->begun, ' ', NULL);
}

int log_inlet_take(struct log_inlet *inlet, const char *bytes, size_t length, int64_t now_ms, struct error *error)
{
    inlet->closed = false;
    while (length > 0) {
        const char *newline = memchr(bytes, '\n', length);
        size_t part = newline ? (size_t)(newline - bytes) : length, room = LOG_LINE_MAX - 1 - inlet->begun.length;
        bool fits = part <= room;
        part = fits ? part : room;
        if (buffer_append(&inlet->begun, bytes, part, error) < 0)
            return -1;
        if (!fits)
            line_break(inlet, now_ms);
        else if (newline)
            line_end(inlet, now_ms);
        part += fits && newline;
        bytes += part;
        length -= part;
    }
    return 0;
}

void log_inlet_cut(struct log_inlet *inlet)
{
    buffer_clear(&inlet->begun);
    log_position_cut(&inlet->position);
}

const struct log_position *log_inlet_position(const struct log_inlet *inlet)
{
    return &inlet->position;
}

size_t log_inlet_begun(const struct log_inlet *inlet)
{
    return inlet->begun.length;
}

void log_inlet_close(struct log_inlet *inlet, int64_t now_ms)
{
    if (inlet->begun.length > 0)
        line_end(inlet, now_ms);
    inlet->closed = true;
}

static struct log_text head_of(const struct log_inlet *inlet)
{
    return (struct log_text){.text = inlet->first->text, .end = inlet->first->text + inlet->first->length};
}

static bool is_earlier(const struct log_inlet *left, const struct log_inlet *right)
{
    const struct log_text a = head_of(left), b = head_of(right);
    return log_time_compare(&a, &b) < 0;
}

static void print_head(struct log_queue *queue, struct log_inlet *inlet, struct buffer *out)
{
    struct log_line *line = inlet->first;
    log_line_print(&queue->style, inlet->speaker, line->text, line->length, out);
    inlet->first = line->next;
    if (!inlet->first)
        inlet->last = &inlet->first;
    queue->held -= line->length;
    free(line);
}

/* If a line is overdue, all earlier lines are returned as well. */
bool log_queue_next(struct log_queue *queue, int64_t now_ms, struct buffer *out)
{
    struct log_inlet *earliest = NULL;
    bool awaited = false;
    for (struct log_inlet *inlet = queue->inlets; inlet; inlet = inlet->next) {
        if (inlet->first && (!earliest || is_earlier(inlet, earliest)))
            earliest = inlet;
        awaited |= !inlet->first && !inlet->closed;
    }
    if (!earliest || (awaited && queue->held <= LOG_HELD_MAX && now_ms < log_queue_due_ms(queue)))
        return false;
    print_head(queue, earliest, out);
    return true;
}

int64_t log_queue_due_ms(const struct log_queue *queue)
{
    int64_t due_ms = -1;
    for (const struct log_inlet *inlet = queue->inlets; inlet; inlet = inlet->next)
        if (inlet->first && (due_ms < 0 || inlet->first->came_ms + LOG_HOLD_MS < due_ms))
            due_ms = inlet->first->came_ms + LOG_HOLD_MS;
    return due_ms;
}
