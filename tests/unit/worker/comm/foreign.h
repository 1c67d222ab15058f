/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes of another version: their messages are whole, but of another protocol.
 */
#ifndef COXSWAIN_TESTS_FOREIGN_H
#define COXSWAIN_TESTS_FOREIGN_H

#include <stddef.h>

#include "worker/comm/rpc.h"

/* Turns an encoded message into one of the next protocol, with a checksum that fits. */
void foreign_message(void *bytes, size_t length);

/* Opens a stream of a server of another version, which answers everything with the message in `context`, a struct buffer that outlives
 * the server. */
void foreign_opened(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events,
                    void **ret_stream_context);

#endif
