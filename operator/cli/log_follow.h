/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements `cox logs --follow`: streams the logs of all selected pods of a job, also of pods that are
 * created later, and prints their lines ordered by time (log_queue.h). A stream that is cut is resumed. The
 * call blocks until the job is over and every log has been read to its end. A pod that keeps running after
 * the job is read for at most 30 more seconds; a message on stderr says so.
 */
#ifndef COXSWAIN_CLI_LOG_FOLLOW_H
#define COXSWAIN_CLI_LOG_FOLLOW_H

#include "operator/cli/log_lines.h"
#include "operator/cli/log_source.h"

/* Returns EXIT_SUCCESS, or EXIT_FAILURE if a log could not be read to its end (a message was
 * printed to stderr), or -1 with the error. */
int log_follow(struct cluster *cluster, const struct command_line *line, const struct log_style *style,
               struct error *error);

#endif
