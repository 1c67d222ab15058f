/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes records to a file from a thread of its own, for TensorBoard's event files (tensorboard.c).
 * The caller never waits for the disk, which may hang. If the queue is full, records are dropped
 * and counted.
 */
#ifndef COXSWAIN_REPORT_EVENT_WRITER_H
#define COXSWAIN_REPORT_EVENT_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* Capacity of the queue in bytes. As many again may be in the course of being written. */
#define EVENT_WRITER_QUEUE ((size_t)4 << 20)

struct event_writer;

/* Starts a writer. Takes over the descriptor, and closes it on failure too. */
int event_writer_new(int descriptor, struct event_writer **ret_writer, struct error *error);

/* Queues one record. It is written by the next event_writer_flush, completely or not at all,
 * except that a disk error may leave half of the last record. Fails with the disk's error once
 * writing has failed. */
int event_writer_append(struct event_writer *writer, const void *record, size_t length, struct error *error);
/* Returns how many records were dropped because the queue was full. */
int64_t event_writer_left_out(struct event_writer *writer);
/* Starts writing the queued records, and returns at once. Fails like event_writer_append. */
int event_writer_flush(struct event_writer *writer, struct error *error);
/* Flushes and waits up to `ms` milliseconds. Returns whether all queued records have been
 * written. */
bool event_writer_settle(struct event_writer *writer, int64_t ms);
/* Flushes, closes the file and frees the writer, waiting up to `ms` milliseconds. Returns
 * whether all queued records have been written. If the disk hangs longer, the thread frees the
 * writer when the disk answers. */
bool event_writer_free(struct event_writer *writer, int64_t ms);

#endif
