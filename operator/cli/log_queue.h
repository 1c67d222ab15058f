/* SPDX-License-Identifier: Apache-2.0
 *
 * Orders the lines of several growing logs by time, for `cox logs --follow` (log_follow.h). Each line is held
 * for up to LOG_HOLD_MS, in case another pod's log still delivers an earlier one. Does no I/O and reads no
 * clock: the caller passes the bytes and the time, and asks for the lines that are due.
 */
#ifndef COXSWAIN_CLI_LOG_QUEUE_H
#define COXSWAIN_CLI_LOG_QUEUE_H

#include <stdint.h>

#include "common/error.h"
#include "operator/cli/log_lines.h"
#include "operator/cli/log_position.h"

/* Longest time that a line is held. It is printed at once if every open log has a line. */
#define LOG_HOLD_MS 300
/* Lines are printed at once while more bytes than this are held. */
#define LOG_HELD_MAX (8 * 1024 * 1024)
/* A longer line is printed in pieces. */
#define LOG_LINE_MAX (1024 * 1024)

struct log_queue;
struct log_stream; /* one pod's log; owned by the queue */

struct log_queue *log_queue_new(const struct log_style *style);
void log_queue_free(struct log_queue *queue);

/* Opens a pod's log. The prefixes of all lines become as wide as the longest speaker so far. */
struct log_stream *log_queue_open(struct log_queue *queue, const char *speaker);
/* Takes bytes as the API sends them with timestamps=true; a chunk may end within a line. */
int log_stream_append(struct log_stream *stream, const char *bytes, size_t length, int64_t now_ms, struct error *error);
/* Records that the stream was cut and will be reopened: drops the incomplete line, which will come
 * again, and skips the lines of the new stream that were already taken (log_position.h). */
void log_stream_cut(struct log_stream *stream);
const struct log_position *log_stream_position(const struct log_stream *stream);
/* Returns how many bytes of an incomplete line have been taken. */
size_t log_stream_incomplete_bytes(const struct log_stream *stream);
/* Records that no more bytes are expected: the rest counts as a line, and no line waits for
 * this log. */
void log_stream_close(struct log_stream *stream, int64_t now_ms);

/* Prints the next line that is due. Returns false if none is. */
bool log_queue_next(struct log_queue *queue, int64_t now_ms, struct buffer *out);
/* Returns the time at which the next held line becomes due even if no more lines come; -1: none
 * held. */
int64_t log_queue_due_ms(const struct log_queue *queue);

#endif
