/* SPDX-License-Identifier: Apache-2.0
 *
 * TensorBoard event files: scalars only. The file is a sequence of TFRecords
 * (length, masked CRC-32C of the length, bytes, masked CRC-32C of the bytes),
 * each an `Event` protocol buffer (tensorflow/core/util/event.proto). They are
 * written beside what the caller does (event_writer.h): it never waits for a disk
 * that hangs, but for the opening.
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

/* Creates `directory` if need be and a new event file in it, so that runs that continue show as one curve. */
int tensorboard_open(const char *directory, struct tensorboard **ret_board, struct error *error);
/* Waits for the disk, so long at most; whether all events are in the file. */
bool tensorboard_free(struct tensorboard *board, int64_t ms);

/* One event with all the scalars of a step, which is written after tensorboard_flush; left out, and counted, when the disk has not
 * taken thousands before it. Both fail once writing has. */
int tensorboard_append(struct tensorboard *board, int64_t step, const struct tensorboard_scalar *scalars,
                       unsigned count, struct error *error);
int tensorboard_flush(struct tensorboard *board, struct error *error);
/* The same, and waits for the disk, so long at most; whether all is there. */
bool tensorboard_settle(struct tensorboard *board, int64_t ms);
/* Events that were left out. */
int64_t tensorboard_left_out(struct tensorboard *board);

#endif
