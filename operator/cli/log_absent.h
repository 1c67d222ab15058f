/* SPDX-License-Identifier: Apache-2.0
 *
 * Explains, for `cox logs`, why pods that a job should have are missing from the output: the pod does not
 * exist, or its container has not started. Does no I/O: the caller passes the job and its pods.
 */
#ifndef COXSWAIN_CLI_LOG_ABSENT_H
#define COXSWAIN_CLI_LOG_ABSENT_H

#include "common/buffer.h"
#include "common/json.h"
#include "operator/cli/command_line.h"

/* At most this many members are named; the rest are only counted. */
#define LOG_ABSENT_MAX 10

/* Appends a line for each member that the command line selects and that has no log, such as
 * "worker-1: pod digits-worker-1-1 has not started: ImagePullBackOff". */
void log_absent_print(const struct command_line *line, const struct json *job, const struct json *pods,
                      struct buffer *out);

/* Checks that the job has a member with the selected role and index. If not, fails with
 * ERROR_NOT_FOUND, unless --all-attempts is given: the member may have existed earlier. */
int log_place_check(const struct command_line *line, const struct json *job, struct error *error);

#endif
