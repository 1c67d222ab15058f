/* SPDX-License-Identifier: Apache-2.0
 *
 * How far a log has been read, by the times that the API puts before its lines (timestamps=true), so that one whose stream was
 * cut goes on where it was: what is asked for anew begins with the whole second of the last line (sinceTime). Pure.
 */
#ifndef COXSWAIN_CLI_LOG_POSITION_H
#define COXSWAIN_CLI_LOG_POSITION_H

#include <stdbool.h>
#include <stddef.h>

#define LOG_TIME_MAX 48
/* So often a log is asked for that has no more to come, without a new line, until its rest is given up. */
#define LOG_LAST_TRIES 6

/* Zeroed at the beginning of a log. */
struct log_position {
    char time[LOG_TIME_MAX]; /* of the last line; "": none */
    unsigned same;           /* lines of that time */
    bool repeats;            /* lines come that have been taken before */
    unsigned repeated;       /* of that time, as far as they have come again */
};

/* Whether the line is a new one, which is the last from now on. */
bool log_position_take(struct log_position *position, const char *line, size_t length);
/* What comes next begins anew, at log_position_since or before. */
void log_position_cut(struct log_position *position);
/* Where the last stream ended. What stands between may end one as if the log were at its end, so an end is believed when a
 * second stream ends there, too. Zeroed at the beginning of a log. */
struct log_end {
    bool known;
    char time[LOG_TIME_MAX];
    unsigned same;
    size_t begun;
};
/* Another stream has ended, with `begun` bytes behind its last line: true when it brought all that the one before it did, and
 * no more. */
bool log_end_is_same(struct log_end *end, const struct log_position *position, size_t begun);
/* The time of the last line; NULL: none came. */
const char *log_position_since(const struct log_position *position);

#endif
