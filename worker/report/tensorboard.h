/* SPDX-License-Identifier: Apache-2.0
 *
 * TensorBoard event files: scalars only. The file is a sequence of TFRecords
 * (length, masked CRC-32C of the length, bytes, masked CRC-32C of the bytes),
 * each an `Event` protocol buffer (tensorflow/core/util/event.proto).
 */
#ifndef COXSWAIN_REPORT_TENSORBOARD_H
#define COXSWAIN_REPORT_TENSORBOARD_H

#include <stdint.h>

#include "common/error.h"

struct tensorboard;

struct tensorboard_scalar {
    const char *tag; /* "train/loss" */
    double value;
};

/* Creates `directory` if need be and a new event file in it, so that runs that continue show as one curve. */
int tensorboard_open(const char *directory, struct tensorboard **ret_board, struct error *error);
void tensorboard_free(struct tensorboard *board);

/* One event with all the scalars of a step; buffered until tensorboard_flush. */
int tensorboard_append(struct tensorboard *board, int64_t step, const struct tensorboard_scalar *scalars,
                       unsigned count, struct error *error);
int tensorboard_flush(struct tensorboard *board, struct error *error);

#endif
