/* SPDX-License-Identifier: Apache-2.0
 *
 * Which logs of a job are asked for, and where the API has them.
 */
#ifndef COXSWAIN_CLI_LOG_SOURCE_H
#define COXSWAIN_CLI_LOG_SOURCE_H

#include "operator/cli/cluster.h"

/* Whether the command line asks for this pod's log, and there is one (its container has started). */
bool log_is_wanted(const struct command_line *line, const struct json *pod);

/* More of it may come: its container has not ended. `pod` NULL: it is gone. */
bool log_may_go_on(const struct command_line *line, const struct json *pod);

/* Path and query of its log with timestamps; `since` a line's time (its second is whole: lines of it come again), NULL: as the
 * command line says. */
int log_path(const struct command_line *line, const struct json *pod, bool follow, const char *since,
             struct buffer *path, struct error *error);

#endif
