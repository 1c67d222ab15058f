/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs an operation that follows a schedule (schedule.h): an all-reduce in which each rank sends, receives and adds
 * step by step. operation.c calls these functions for operations of kind OPERATION_STEPPED. Only operation.c and
 * operation_steps.c include this header.
 */
#ifndef COXSWAIN_COMM_OPERATION_STEPS_H
#define COXSWAIN_COMM_OPERATION_STEPS_H

#include "worker/comm/operation.h"

/* Sets up the expected frames. Nothing is sent before the first operation_steps_advance. */
void operation_steps_begin(struct operation *operation, const struct schedule *schedule);
void operation_steps_advance(struct operation *operation, operation_send *send, void *context);
/* Returns NULL if no such frame is expected. */
void *operation_steps_destination(const struct operation *operation, unsigned rank, const struct frame_header *header);
void operation_steps_received(struct operation *operation, unsigned rank, const struct frame_header *header,
                              operation_send *send, void *context);

/* operation.c */
void operation_send_frame(struct operation *operation, unsigned rank, enum frame_kind kind, unsigned part,
                          const void *payload, size_t length, operation_send *send, void *context);

#endif
