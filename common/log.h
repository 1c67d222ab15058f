/* SPDX-License-Identifier: Apache-2.0
 *
 * Log lines on stderr, as text or as one JSON object a line. Only the top of a
 * program logs (main, the reconcile loop, the training loop); library code
 * returns errors. Thread-safe: a line is written with one write(2).
 *
 *     log_info("pod created", "job", key, "pod", name, NULL);
 *     text: 2026-11-20T14:00:00.123Z info  pod created job=default/digits pod=digits-worker-0-1
 *     JSON: {"time":"…","level":"info","message":"pod created","job":"…","pod":"…"}
 */
#ifndef COXSWAIN_COMMON_LOG_H
#define COXSWAIN_COMMON_LOG_H

#include <stdbool.h>

#include "common/error.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR };
enum log_format { LOG_TEXT, LOG_JSON };

/* Before threads start. Defaults: LOG_INFO, LOG_TEXT. */
void log_configure(enum log_level lowest, enum log_format format);
/* "debug", "info", "warning", "error"; "text", "json"; false when unknown. */
bool log_level_parse(const char *name, enum log_level *ret_level);
bool log_format_parse(const char *name, enum log_format *ret_format);

/* `message`, then key and value strings in pairs, then NULL. A NULL value is left out with its key. */
void log_debug(const char *message, ...) __attribute__((sentinel));
void log_info(const char *message, ...) __attribute__((sentinel));
void log_warning(const char *message, ...) __attribute__((sentinel));
void log_error(const char *message, ...) __attribute__((sentinel));

#endif
