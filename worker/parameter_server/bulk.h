/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors over a stream: cut into bulk messages on the one side without a copy,
 * put together on the other.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_BULK_H
#define COXSWAIN_PARAMETER_SERVER_BULK_H

#include "worker/comm/rpc.h"
#include "worker/parameter_server/message.h"

/* Sends `length` bytes that stay as they are until the other side has answered. */
void bulk_send(struct rpc_stream *stream, const void *bytes, size_t length);

/* What is being received. Zeroed memory expects nothing. */
struct bulk_inbox {
    unsigned char *bytes;
    size_t expected, received;
    bool owned; /* `bytes` is its own, kept between uses */
    size_t capacity;
};
/* Expects `length` bytes into memory of its own, or to `where`. ERROR_NO_SPACE. */
int bulk_inbox_expect(struct bulk_inbox *inbox, size_t length, void *where, struct error *error);
/* Takes a message's pieces after their bulk head. ERROR_CORRUPT when they are not the next that were announced. */
int bulk_inbox_take(struct bulk_inbox *inbox, const struct rpc_piece *pieces, unsigned count, struct error *error);
static inline bool bulk_inbox_is_full(const struct bulk_inbox *inbox)
{
    return inbox->expected > 0 && inbox->received == inbox->expected;
}
void bulk_inbox_clear(struct bulk_inbox *inbox);
void bulk_inbox_release(struct bulk_inbox *inbox);

/* Whether a message in pieces is a bulk message; else it is decoded (release it). ERROR_CORRUPT when it is neither. */
int bulk_or_message(const struct rpc_piece *pieces, unsigned count, bool *ret_bulk, struct ps_message *ret_message,
                    struct error *error);

/* What a message in pieces is to a stream on which `inbox`, or with NULL no tensor, is awaited. */
enum bulk_heard {
    BULK_HEARD_NOTHING, /* neither a message nor awaited bytes: `error` says why */
    BULK_HEARD_MESSAGE, /* decoded; release it */
    BULK_HEARD_BYTES,   /* in the inbox now, and more are to come */
    BULK_HEARD_ALL,     /* of the tensor */
};
enum bulk_heard bulk_hear(const struct rpc_piece *pieces, unsigned count, struct bulk_inbox *inbox,
                          struct ps_message *ret_message, struct error *error);

/* For whoever is called, of a message that could not be read: a caller of another protocol is told so, by a refusal whose own number
 * says it; anything else ends the stream. */
void ps_message_answer_unread(struct rpc_stream *stream, const struct error *error);

/* Encodes and sends. */
void ps_message_send(struct rpc_stream *stream, const struct ps_message *message);

#endif
