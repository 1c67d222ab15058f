/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/log_lines.h"

#include <string.h>

#include "common/contract/labels.h"
#include "common/fnv1a.h"

#define PLAIN "\033[0m"

void log_speaker(const struct json *pod, char speaker[LOG_SPEAKER_MAX])
{
    const struct json *labels = json_at(pod, "metadata.labels");
    snprintf(speaker, LOG_SPEAKER_MAX, "%s-%s", json_string(json_member(labels, LABEL_ROLE), "pod"),
             json_string(json_member(labels, LABEL_INDEX), "?"));
}

/* Returns the colour of a speaker, which does not depend on the other speakers. */
static const char *colour_of(const char *speaker)
{
    static const char *const colours[] = {"\033[36m", "\033[33m", "\033[32m", "\033[35m", "\033[34m", "\033[31m"};
    return colours[fnv1a(FNV1A_START, speaker) % (sizeof colours / sizeof *colours)];
}

static void print_prefix(const struct log_style *style, const char *speaker, struct buffer *out)
{
    if (!style->prefix)
        return;
    if (style->colour)
        buffer_append_string(out, colour_of(speaker), NULL);
    buffer_format(out, "%-*s |", (int)style->width, speaker);
    if (style->colour)
        buffer_append_string(out, PLAIN, NULL);
    buffer_append_byte(out, ' ', NULL);
}

size_t log_line_text(const char *line, size_t length)
{
    const char *blank = memchr(line, ' ', length);
    size_t time = blank ? (size_t)(blank - line) : length;
    return time > 0 && line[time - 1] == 'Z' && line[0] >= '0' && line[0] <= '9' ? time + (blank != NULL) : 0;
}

void log_line_print(const struct log_style *style, const char *speaker, const char *line, size_t length,
                    struct buffer *out)
{
    size_t skip = style->timestamps ? 0 : log_line_text(line, length);
    print_prefix(style, speaker, out);
    buffer_append(out, line + skip, length - skip, NULL);
    buffer_append_byte(out, '\n', NULL);
}

/* RFC 3339 in UTC with any number of digits behind the point: a shorter fraction is the earlier one. */
int log_time_compare(const struct log_text *left, const struct log_text *right)
{
    const char *a = left->text, *b = right->text;
    while (a < left->end && b < right->end && *a == *b && *a != ' ' && *a != 'Z' && *a != '\n') {
        a++;
        b++;
    }
    bool a_ends = a == left->end || *a == 'Z' || *a == ' ' || *a == '\n';
    bool b_ends = b == right->end || *b == 'Z' || *b == ' ' || *b == '\n';
    if (a_ends || b_ends)
        return (int)b_ends - (int)a_ends;
    return *a < *b ? -1 : 1;
}

bool log_merge_line(const struct log_style *style, struct log_text *logs, unsigned count, struct buffer *out)
{
    struct log_text *next = NULL;
    for (unsigned i = 0; i < count; i++)
        if (logs[i].text < logs[i].end && (!next || log_time_compare(&logs[i], next) < 0))
            next = &logs[i];
    if (!next)
        return false;
    const char *newline = memchr(next->text, '\n', (size_t)(next->end - next->text));
    const char *line_end = newline ? newline : next->end;
    log_line_print(style, next->speaker, next->text, (size_t)(line_end - next->text), out);
    next->text = newline ? newline + 1 : next->end;
    return true;
}
