/* SPDX-License-Identifier: Apache-2.0
 *
 * Resumes a pod's log after its stream was cut, without repeating or losing lines, for `cox logs --follow`
 * (log_queue.h) and job_follow.h. The position is the timestamp that the API server puts before each line
 * (timestamps=true). A resumed stream starts at the whole second of the last line (sinceTime); lines of that
 * second that were read before the cut are skipped. Does no I/O.
 */
#ifndef COXSWAIN_CLI_LOG_POSITION_H
#define COXSWAIN_CLI_LOG_POSITION_H

#include <stdbool.h>
#include <stddef.h>

#define LOG_TIME_MAX 48
/* Once no new lines are expected: how many requests without a new line are made before
 * giving up. */
#define LOG_LAST_TRIES 6

/* Zero it at the beginning of a log. */
struct log_position {
    char time[LOG_TIME_MAX]; /* timestamp of the last line; "": no line yet */
    unsigned same;           /* lines with that timestamp */
    bool repeats;            /* the stream was resumed and may repeat lines */
    unsigned repeated;       /* of the `same` lines, those that have come again */
};

/* Returns whether the line is new; if so, makes it the position. */
bool log_position_take(struct log_position *position, const char *line, size_t length);
/* Records that the next line comes from a new stream, which begins at log_position_since or
 * earlier. */
void log_position_cut(struct log_position *position);
/* The position at which the last stream ended. A proxy may end a stream early as if the log were complete, so the
 * end counts only if a second stream ends at the same place. Zero it at the beginning of a log. */
struct log_end {
    bool known;
    char time[LOG_TIME_MAX];
    unsigned same;
    size_t partial_bytes; /* of an incomplete line at the end */
};
/* Records that a stream has ended with `partial_bytes` bytes of an incomplete line. Returns true if the
 * stream before it ended at the same place and this one repeated all of its last lines. */
bool log_end_is_same(struct log_end *end, const struct log_position *position, size_t partial_bytes);
/* Returns the timestamp of the last line, or NULL if there was none. Owned by `position`. */
const char *log_position_since(const struct log_position *position);

#endif
