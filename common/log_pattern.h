/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds values in a text, such as the log of a training script, by a regular expression with named groups: "loss: (?<loss>[0-9.]+)".
 * The library PCRE2 compiles and runs the expressions, which have Perl's syntax. They come from users, so the size of an expression and
 * the work and memory of a search are limited.
 */
#ifndef COXSWAIN_LOG_PATTERN_H
#define COXSWAIN_LOG_PATTERN_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define LOG_PATTERN_MAX 1024 /* bytes of an expression */

struct log_pattern;

/* Compiles an expression; one thread at a time may use the result. ERROR_INVALID: it has a syntax error, is too large, or has no named
 * group; the message is written to follow the expression ("is not …"). Free the result with log_pattern_free. */
int log_pattern_new(const char *expression, struct log_pattern **ret_pattern, struct error *error);
void log_pattern_free(struct log_pattern *pattern);
/* Returns 0 if log_pattern_new would succeed. */
int log_pattern_check(const char *expression, struct error *error);

/* Called for each named group of a match that is not empty. `text` lies in the searched text and is not NUL-terminated. */
typedef void log_pattern_found(void *context, const char *group, const char *text, size_t length);

/* Finds all matches in one line, given without its line break. The line need not be UTF-8. Only its last LOG_LINE_MAX bytes are searched.
 * Subtracts the work of the search from `work_left`, which the caller sets to LOG_WORK_MAX once for all lines of a log. ERROR_TOO_LARGE if
 * `work_left` is used up. */
#define LOG_LINE_MAX 1024
#define LOG_WORK_MAX 1000000 /* takes a tenth of a second at most */
int log_pattern_search(struct log_pattern *pattern, const char *line, size_t length, int64_t *work_left,
                       log_pattern_found *found, void *context, struct error *error);

#endif
