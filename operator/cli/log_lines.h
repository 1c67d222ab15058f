/* SPDX-License-Identifier: Apache-2.0
 *
 * Merges the log lines of several pods into one stream, ordered by time, for `cox logs`. Each line can have
 * its pod as a coloured prefix. log_merge_line merges logs that are complete; log_queue.h does the same for
 * logs that still grow. Lines are ordered by the timestamps that the API server puts before them; within one
 * log, order is kept. Does no I/O.
 */
#ifndef COXSWAIN_CLI_LOG_LINES_H
#define COXSWAIN_CLI_LOG_LINES_H

#include <stdbool.h>

#include "common/buffer.h"
#include "common/json.h"

/* Formats a pod's role and index from its labels, such as "worker-0". */
#define LOG_SPEAKER_MAX 48
void log_speaker(const struct json *pod, char speaker[LOG_SPEAKER_MAX]);

struct log_style {
    bool prefix, colour, timestamps;
    unsigned width; /* of the longest speaker */
};

/* Returns the offset of a line's text after its timestamp; 0 if the line has no timestamp. */
size_t log_line_text(const char *line, size_t length);
/* Appends one line, with a newline. `line` has no newline and begins with its timestamp, as the API sends it with timestamps=true:
 * "2026-11-20T14:00:00.123Z text". */
void log_line_print(const struct log_style *style, const char *speaker, const char *line, size_t length,
                    struct buffer *out);

/* A whole log, of any bytes; log_merge_line advances `text` to `end`. */
struct log_text {
    char speaker[LOG_SPEAKER_MAX];
    const char *text, *end;
};
/* Compares the timestamps of two logs' next lines. Returns a negative number if the left is
 * earlier. */
int log_time_compare(const struct log_text *left, const struct log_text *right);
/* Appends the line with the earliest timestamp among the next lines of all logs, and advances that log. The order within a log is kept.
 * Returns false when all logs are at their end. */
bool log_merge_line(const struct log_style *style, struct log_text *logs, unsigned count, struct buffer *out);

#endif
