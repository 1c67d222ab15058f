/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes log lines to stderr, as text or as one JSON object per line. Only the top layer of a program logs (main, the reconcile loop, the
 * training loop); library code returns errors. Thread-safe: each line is written with one write(2).
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

/* Sets the lowest level that is written, and the format. Call it before threads are started. Defaults: LOG_INFO, LOG_TEXT. */
void log_configure(enum log_level lowest, enum log_format format);
/* Parse "debug", "info", "warning", "error", and "text", "json". False if the name is unknown. */
bool log_level_parse(const char *name, enum log_level *ret_level);
bool log_format_parse(const char *name, enum log_format *ret_format);

/* `message` is followed by pairs of key and value strings, then NULL. A pair with a NULL value is left out. */
void log_debug(const char *message, ...) __attribute__((sentinel));
void log_info(const char *message, ...) __attribute__((sentinel));
void log_warning(const char *message, ...) __attribute__((sentinel));
void log_error(const char *message, ...) __attribute__((sentinel));

#endif
