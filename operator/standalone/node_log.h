/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores the output of containers that the embedded control plane's node runs, in the CRI log format, as container runtimes do:
 *
 *   2026-11-20T14:00:00.123456789Z stdout F a whole line
 *   2026-11-20T14:00:00.123456789Z stderr P the first part of a long or unfinished one
 *
 * With the time in each line, --timestamps, --since and --tail need no index. A file that has grown to CONTAINER_LOG_MAX is renamed to
 * <path>.1, replacing the one before; as with a kubelet, only the newest file is read.
 */
#ifndef COXSWAIN_STANDALONE_NODE_LOG_H
#define COXSWAIN_STANDALONE_NODE_LOG_H

#include "common/buffer.h"
#include "operator/standalone/node_process.h"
#include "operator/standalone/pod_log.h"

#define CONTAINER_LOG_MAX (64 * 1024 * 1024)
#define CONTAINER_LOG_LINE_MAX (16 * 1024) /* longer lines are stored in parts */

struct container_log;

/* Creates or appends to `path`. */
int container_log_open(const char *path, struct container_log **ret_log, struct error *error);
void container_log_append(struct container_log *log, enum process_stream stream, const char *bytes, size_t length);
/* Closes the log. Followers get the rest of the log and then end. */
void container_log_free(struct container_log *log);

/* Appends the lines that `query` selects to `out`, as plain text. ERROR_NOT_FOUND when the file
 * does not exist. */
int container_log_read(const char *path, const struct pod_log_query *query, struct buffer *out, struct error *error);
/* Answers with a stream that lasts until the log is closed or the client disconnects. */
int container_log_follow(struct container_log *log, const struct pod_log_query *query, struct http_exchange *exchange,
                         struct error *error);

#endif
