/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the logs of a job's pods as they are now, one pod after another, for `cox logs` and `cox ui`. log_merge_line
 * (log_lines.h) merges them by time. `cox logs --follow` uses log_follow.h instead.
 */
#ifndef COXSWAIN_CLI_LOG_READ_H
#define COXSWAIN_CLI_LOG_READ_H

#include "operator/cli/cluster.h"
#include "operator/cli/log_lines.h"

/* Logs as they were read, and how far each is printed. Zero it first; release it with log_texts_release, also after a
 * failure. */
struct log_texts {
    struct buffer *texts;
    struct log_text *logs;
    unsigned count;
    unsigned unread; /* how many of them the cluster did not give, or not to their end */
};

/* Reads one pod's log. `since`, see log_path; `text` is not initialised yet, and is to be released also after a failure. */
int log_text_read(struct cluster *cluster, const struct command_line *line, const struct json *pod, const char *since,
                  struct buffer *text, struct error *error);

typedef void log_unread(const char *speaker, const struct json *pod, const struct error *cause);

/* Reads the logs of the pods that the command line selects (log_source.h). Calls `unread` for each log that cannot be read, and
 * reads the others; if the user may read no logs at all (401, 403), fails at the first. */
int log_texts_read(struct cluster *cluster, const struct command_line *line, const struct json *pods,
                   log_unread *unread, struct log_texts *texts, struct error *error);
void log_texts_release(struct log_texts *texts);

/* Returns how wide the longest name of a speaker is, for log_style. */
unsigned log_texts_width(const struct log_texts *texts);

#endif
