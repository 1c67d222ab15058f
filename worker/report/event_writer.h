/* SPDX-License-Identifier: Apache-2.0
 *
 * Records for a file, written on a thread of their own: whoever has them never
 * waits for the disk, which may hang. What has no room meanwhile is left out and
 * counted.
 */
#ifndef COXSWAIN_REPORT_EVENT_WRITER_H
#define COXSWAIN_REPORT_EVENT_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* So many bytes wait at most, beside as many that are being written. */
#define EVENT_WRITER_QUEUE ((size_t)4 << 20)

struct event_writer;

/* Takes the descriptor over, also when it fails. */
int event_writer_new(int descriptor, struct event_writer **ret_writer, struct error *error);

/* One record, which is in the file as a whole or not at all, once event_writer_flush has been called; a disk that gives an error may
 * keep half of the last one. Fails once writing has, with that error. */
int event_writer_append(struct event_writer *writer, const void *record, size_t length, struct error *error);
/* Records that had no room. */
int64_t event_writer_left_out(struct event_writer *writer);
/* What waits is written from now on; waits for nothing. Fails as event_writer_append. */
int event_writer_flush(struct event_writer *writer, struct error *error);
/* The same, and waits for the disk's answer, so long at most: whether all is there. */
bool event_writer_settle(struct event_writer *writer, int64_t ms);
/* The same, and closes the file. On false a disk that hangs keeps the thread, which ends when it goes on. */
bool event_writer_free(struct event_writer *writer, int64_t ms);

#endif
