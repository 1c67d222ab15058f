/* SPDX-License-Identifier: Apache-2.0
 *
 * An operation that goes by a schedule. For operation.c alone, as is the sending
 * of one frame for operation_steps.c.
 */
#ifndef COXSWAIN_COMM_OPERATION_STEPS_H
#define COXSWAIN_COMM_OPERATION_STEPS_H

#include "worker/comm/operation.h"

/* Says what is awaited; nothing is sent before the first advance. */
void operation_steps_begin(struct operation *operation, const struct schedule *schedule);
void operation_steps_advance(struct operation *operation, operation_send *send, void *context);
/* NULL: no such frame is expected. */
void *operation_steps_destination(const struct operation *operation, unsigned rank, const struct frame_header *header);
void operation_steps_received(struct operation *operation, unsigned rank, const struct frame_header *header,
                              operation_send *send, void *context);

/* operation.c */
void operation_send_frame(struct operation *operation, unsigned rank, enum frame_kind kind, unsigned part,
                          const void *payload, size_t length, operation_send *send, void *context);

#endif
