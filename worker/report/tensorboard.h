/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the metrics of a run to event files that TensorBoard reads; report.c calls it. The file is
 * a sequence of TFRecords (length, masked CRC-32C of the length, bytes, masked CRC-32C of the
 * bytes), each an `Event` protocol buffer (tensorflow/core/util/event.proto). A thread writes them
 * (event_writer.h), so only tensorboard_open waits for a disk that hangs.
 */
#ifndef COXSWAIN_REPORT_TENSORBOARD_H
#define COXSWAIN_REPORT_TENSORBOARD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct tensorboard;

struct tensorboard_scalar {
    const char *tag; /* "train/loss" */
    double value;
};

/* Creates `directory` if it does not exist, and a new event file in it. TensorBoard shows the
 * files of one directory as one curve, so a resumed run continues its curve. */
int tensorboard_open(const char *directory, struct tensorboard **ret_board, struct error *error);
/* Writes the queued events, closes the file and frees `board`, waiting up to `ms` milliseconds.
 * Returns whether all queued events are in the file. */
bool tensorboard_free(struct tensorboard *board, int64_t ms);

/* Queues one event with all scalars of a step; tensorboard_flush writes it. If the queue is full
 * because the disk is slow, the event is dropped and counted. Both functions fail once writing
 * has failed. */
int tensorboard_append(struct tensorboard *board, int64_t step, const struct tensorboard_scalar *scalars,
                       unsigned count, struct error *error);
int tensorboard_flush(struct tensorboard *board, struct error *error);
/* Flushes and waits up to `ms` milliseconds. Returns whether all queued events are in the file. */
bool tensorboard_settle(struct tensorboard *board, int64_t ms);
/* Returns how many events were dropped. */
int64_t tensorboard_left_out(struct tensorboard *board);

#endif
