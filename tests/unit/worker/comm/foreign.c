/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/worker/comm/foreign.h"

#include "common/buffer.h"
#include "common/crc32c.h"
#include "worker/comm/little_endian.h"
#include "worker/comm/protocol.h"

void foreign_message(void *bytes, size_t length)
{
    unsigned char *start = bytes;
    put_u32(start + 4, CREW_PROTOCOL + 1);
    put_u32(start + length - 4, crc32c(0, start, length - 4));
}

static void answer(void *context, struct rpc_stream *stream, const void *bytes, size_t length)
{
    const struct buffer *message = context;
    (void)bytes, (void)length;
    rpc_stream_send(stream, message->data, message->length);
}

static void closed(void *context, struct rpc_stream *stream, const struct error *error)
{
    (void)context, (void)stream, (void)error;
}

void foreign_opened(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events,
                    void **ret_stream_context)
{
    (void)stream;
    *ret_events = (struct rpc_stream_events){.message = answer, .closed = closed};
    *ret_stream_context = context;
}
