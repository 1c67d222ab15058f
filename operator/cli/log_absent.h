/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose logs there are none of: places of the crew that have no pod, or one that
 * has not said anything because it has not begun. Pure.
 */
#ifndef COXSWAIN_CLI_LOG_ABSENT_H
#define COXSWAIN_CLI_LOG_ABSENT_H

#include "common/buffer.h"
#include "common/json.h"
#include "operator/cli/command_line.h"

/* No more places are named than these; the rest are counted. */
#define LOG_ABSENT_MAX 10

/* A line for each place that the command line asks for and that has no log, such as
 * "worker-1: pod digits-worker-1-1 has not begun: ImagePullBackOff". Nothing when there is none. */
void log_absent_print(const struct command_line *line, const struct json *job, const struct json *pods,
                      struct buffer *out);

/* ERROR_NOT_FOUND when the job's crew has no place of the role and index that are asked for. */
int log_place_check(const struct command_line *line, const struct json *job, struct error *error);

#endif
