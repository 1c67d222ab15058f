/* SPDX-License-Identifier: Apache-2.0
 *
 * Selects the pods whose logs a command line of `cox logs` asks for (by role, index, container and attempt),
 * and builds the API paths of these logs. Does no I/O.
 */
#ifndef COXSWAIN_CLI_LOG_SOURCE_H
#define COXSWAIN_CLI_LOG_SOURCE_H

#include "operator/cli/cluster.h"

/* Returns whether the command line selects this pod and its container has started, so it has
 * a log. */
bool log_is_wanted(const struct command_line *line, const struct json *pod);

/* Returns whether the log may still grow: its container has not ended. False if `pod` is NULL
 * (deleted). */
bool log_may_go_on(const struct command_line *line, const struct json *pod);

/* Appends the path and query of the pod's log, with timestamps. `since` is the timestamp of a line
 * from which to resume (the API rounds it down to the second, so lines repeat); NULL: start where
 * the command line says (--tail). */
int log_path(const struct command_line *line, const struct json *pod, bool follow, const char *since,
             struct buffer *path, struct error *error);

#endif
