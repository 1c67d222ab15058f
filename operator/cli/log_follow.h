/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints the logs of a job's pods as they grow, those of pods that come later too,
 * until the job is over and every log is read to its end; of pods that live on, until a moment after the job's.
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
