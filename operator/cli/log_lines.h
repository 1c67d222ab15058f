/* SPDX-License-Identifier: Apache-2.0
 *
 * Log lines of several pods as one stream: who says it in front, in a colour of
 * their own, in the order of time. Pure.
 */
#ifndef COXSWAIN_CLI_LOG_LINES_H
#define COXSWAIN_CLI_LOG_LINES_H

#include <stdbool.h>

#include "common/buffer.h"
#include "common/json.h"

/* "worker-0", from a pod's labels. */
#define LOG_SPEAKER_MAX 48
void log_speaker(const struct json *pod, char speaker[LOG_SPEAKER_MAX]);

struct log_style {
    bool prefix, colour, timestamps;
    unsigned width; /* of the longest speaker */
};

/* Where the text of such a line begins, behind its time; 0 when it has none. */
size_t log_line_text(const char *line, size_t length);
/* One line as the API gives it with timestamps=true ("2026-11-20T14:00:00.123Z text", no newline), with one at its end. */
void log_line_print(const struct log_style *style, const char *speaker, const char *line, size_t length,
                    struct buffer *out);

/* A whole log, of any bytes; log_merge_line advances `text` to `end`. */
struct log_text {
    char speaker[LOG_SPEAKER_MAX];
    const char *text, *end;
};
/* By the times of their next lines: below 0 when the left one is the earlier. */
int log_time_compare(const struct log_text *left, const struct log_text *right);
/* The next line of all logs by its time, which only moves on within each log; false when all are at their end. */
bool log_merge_line(const struct log_style *style, struct log_text *logs, unsigned count, struct buffer *out);

#endif
