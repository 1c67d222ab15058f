/* SPDX-License-Identifier: Apache-2.0 */
#include "common/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/clock.h"
#include "common/json.h"

#define LINE_MAX_BYTES (64 * 1024)

static enum log_level lowest_level = LOG_INFO;
static enum log_format line_format = LOG_TEXT;

static const char *const level_names[] = {"debug", "info", "warning", "error"};
static const char *const format_names[] = {"text", "json"};

void log_configure(enum log_level lowest, enum log_format format)
{
    lowest_level = lowest;
    line_format = format;
}

static bool name_find(const char *name, const char *const names[], int count, int *ret_index)
{
    for (int i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0) {
            *ret_index = i;
            return true;
        }
    return false;
}

bool log_level_parse(const char *name, enum log_level *ret_level)
{
    int index;
    if (!name_find(name, level_names, LOG_ERROR + 1, &index))
        return false;
    *ret_level = (enum log_level)index;
    return true;
}

bool log_format_parse(const char *name, enum log_format *ret_format)
{
    int index;
    if (!name_find(name, format_names, LOG_JSON + 1, &index))
        return false;
    *ret_format = (enum log_format)index;
    return true;
}

/* ---------------------------------------------------------------- text lines */

static bool reads_as_one_word(const char *value)
{
    if (*value == '\0')
        return false;
    for (; *value; value++)
        if ((unsigned char)*value <= ' ' || *value == '"' || *value == '=' || *value == 0x7f)
            return false;
    return true;
}

/* Control characters would let outside text forge a line or talk to the terminal. */
static void append_quoted(struct buffer *line, const char *value)
{
    struct json *text = json_new_string(value);
    json_print(text, line, NULL);
    json_free(text);
}

static void append_plain(struct buffer *line, const char *message)
{
    for (; *message; message++)
        buffer_append_byte(line, (unsigned char)*message < ' ' || *message == 0x7f ? ' ' : *message, NULL);
}

static void format_text(struct buffer *line, enum log_level level, const char *time, const char *message, va_list pairs)
{
    buffer_format(line, "%s %-7s ", time, level_names[level]);
    append_plain(line, message);
    for (const char *key; (key = va_arg(pairs, const char *));) {
        const char *value = va_arg(pairs, const char *);
        if (value == NULL)
            continue;
        buffer_format(line, " %s=", key);
        if (reads_as_one_word(value))
            buffer_append_string(line, value, NULL);
        else
            append_quoted(line, value);
    }
}

/* ---------------------------------------------------------------- JSON lines */

static void format_json(struct buffer *line, enum log_level level, const char *time, const char *message, va_list pairs)
{
    SCOPED_JSON *object = json_new_object();
    json_set_string(object, "time", time);
    json_set_string(object, "level", level_names[level]);
    json_set_string(object, "message", message);
    for (const char *key; (key = va_arg(pairs, const char *));)
        json_set_string(object, key, va_arg(pairs, const char *));
    json_print(object, line, NULL);
}

/* ---------------------------------------------------------------- writing */

static void format_time(char text[CLOCK_TEXT_MAX])
{
    clock_format_microseconds(clock_now_ms(), text);
    char *end = text + strlen(text) - strlen("000Z"); /* milliseconds are enough for a person */
    memcpy(end, "Z", 2);
}

static void write_line(enum log_level level, const char *message, va_list pairs)
{
    if (level < lowest_level)
        return;
    char time[CLOCK_TEXT_MAX];
    format_time(time);
    SCOPED_BUFFER line = BUFFER_INIT(LINE_MAX_BYTES);
    (line_format == LOG_JSON ? format_json : format_text)(&line, level, time, message, pairs);
    buffer_append_byte(&line, '\n', NULL);
    ssize_t ignored = write(STDERR_FILENO, line.data, line.length);
    (void)ignored;
}

#define DEFINE_LOG(name, level)                                                                                        \
    void log_##name(const char *message, ...)                                                                          \
    {                                                                                                                  \
        va_list pairs;                                                                                                 \
        va_start(pairs, message);                                                                                      \
        write_line(level, message, pairs);                                                                             \
        va_end(pairs);                                                                                                 \
    }

DEFINE_LOG(debug, LOG_DEBUG)
DEFINE_LOG(info, LOG_INFO)
DEFINE_LOG(warning, LOG_WARNING)
DEFINE_LOG(error, LOG_ERROR)
