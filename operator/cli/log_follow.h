/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints the logs of a job's pods as they grow, those of pods that come later too,
 * until the job is over and every log is read to its end; of pods that live on, until a moment after the job's.
 */
#ifndef COXSWAIN_CLI_LOG_FOLLOW_H
#define COXSWAIN_CLI_LOG_FOLLOW_H

#include "operator/cli/log_lines.h"
#include "operator/cli/log_source.h"

/* EXIT_SUCCESS; EXIT_FAILURE once a log could not be had to its end, which stderr has said; -1. */
int log_follow(struct cluster *cluster, const struct command_line *line, const struct log_style *style,
               struct error *error);

#endif
