/* SPDX-License-Identifier: Apache-2.0
 *
 * Logs that are followed, as one stream: lines come from several pods whenever
 * they come, and wait a moment for earlier ones of others, so that they leave in
 * the order of time. Pure: the caller has the clock.
 */
#ifndef COXSWAIN_CLI_LOG_QUEUE_H
#define COXSWAIN_CLI_LOG_QUEUE_H

#include <stdint.h>

#include "common/error.h"
#include "operator/cli/log_lines.h"
#include "operator/cli/log_position.h"

/* A line waits for others so long at most; not at all when each open log has one. */
#define LOG_HOLD_MS 300
/* Nor while more bytes than this are held. */
#define LOG_HELD_MAX (8 * 1024 * 1024)
/* A longer line is printed in pieces. */
#define LOG_LINE_MAX (1024 * 1024)

struct log_queue;
struct log_inlet; /* one pod's log; owned by the queue */

struct log_queue *log_queue_new(const struct log_style *style);
void log_queue_free(struct log_queue *queue);

/* The prefix is made as wide as the longest speaker so far. */
struct log_inlet *log_queue_open(struct log_queue *queue, const char *speaker);
/* Bytes as the API gives them with timestamps=true, cut anywhere. */
int log_inlet_take(struct log_inlet *inlet, const char *bytes, size_t length, int64_t now_ms, struct error *error);
/* The stream was cut and is opened again: the line that was begun will come whole, and what of the new stream has been taken
 * before is left out. */
void log_inlet_cut(struct log_inlet *inlet);
const struct log_position *log_inlet_position(const struct log_inlet *inlet);
/* Bytes of a line that is not complete. */
size_t log_inlet_begun(const struct log_inlet *inlet);
/* No more will come: what is left is a line, and nobody waits for another. */
void log_inlet_close(struct log_inlet *inlet, int64_t now_ms);

/* Prints the next line that is due; false: there is none yet. */
bool log_queue_next(struct log_queue *queue, int64_t now_ms, struct buffer *out);
/* When one will be due though nothing more comes; -1: nothing is held. */
int64_t log_queue_due_ms(const struct log_queue *queue);

#endif
