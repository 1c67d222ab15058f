/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends and receives tensors over a gRPC stream, for parameter servers and their workers, if a tensor is small or
 * neither shared memory nor a bulk connection is available. The sender cuts a tensor into bulk messages without copying
 * it; the receiver's inbox puts them together. The header also reads and sends the ordinary messages (message.h) of
 * such a stream.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_BULK_H
#define COXSWAIN_PARAMETER_SERVER_BULK_H

#include "worker/comm/rpc.h"
#include "worker/parameter_server/message.h"

/* Sends `length` bytes, which are not copied: they must not change until the peer has answered, and must stay readable until rpc_free. */
void bulk_send(struct rpc_stream *stream, const void *bytes, size_t length);

/* A tensor that is being received. Zeroed memory expects nothing. */
struct bulk_inbox {
    unsigned char *bytes;
    size_t expected, received;
    bool owned; /* `bytes` is allocated by the inbox and kept between uses */
    size_t capacity;
};
/* Prepares to receive a tensor of `length` bytes at `where`, or, if `where` is NULL, in memory that the inbox allocates.
 * ERROR_NO_SPACE: it cannot be allocated. */
int bulk_inbox_expect(struct bulk_inbox *inbox, size_t length, void *where, struct error *error);
/* Copies the body of a bulk message, given in pieces. ERROR_CORRUPT if it is not the next one
 * announced. */
int bulk_inbox_take(struct bulk_inbox *inbox, const struct rpc_piece *pieces, unsigned count, struct error *error);
static inline bool bulk_inbox_is_full(const struct bulk_inbox *inbox)
{
    return inbox->expected > 0 && inbox->received == inbox->expected;
}
/* Makes the inbox expect nothing; it keeps its memory. */
void bulk_inbox_clear(struct bulk_inbox *inbox);
/* Frees memory that the inbox has allocated; never the caller's. */
void bulk_inbox_release(struct bulk_inbox *inbox);

/* Returns in *ret_bulk whether a message in pieces is a bulk message; if not, decodes it into
 * *ret_message, which the caller releases. ERROR_CORRUPT: it is neither. */
int bulk_or_message(const struct rpc_piece *pieces, unsigned count, bool *ret_bulk, struct ps_message *ret_message,
                    struct error *error);

/* Receives a message on a stream, which is either an ordinary message or a part of the tensor that `inbox` expects (NULL: the stream
 * expects no tensor). Returns which of these it was. */
enum bulk_received {
    BULK_RECEIVED_NOTHING, /* neither a message nor expected bytes; `error` says why */
    BULK_RECEIVED_MESSAGE, /* an ordinary message, decoded into *ret_message; the caller releases it */
    BULK_RECEIVED_BYTES,   /* a part of the tensor, copied to the inbox; more parts will come */
    BULK_RECEIVED_ALL,     /* the last part: the tensor is complete */
};
enum bulk_received bulk_receive(const struct rpc_piece *pieces, unsigned count, struct bulk_inbox *inbox,
                                struct ps_message *ret_message, struct error *error);

/* Answers a message that could not be read, on the called side. A caller with another protocol is
 * refused with a message that contains our protocol; anything else closes the stream. */
void ps_message_answer_unread(struct rpc_stream *stream, const struct error *error);

/* Encodes and sends a message; closes the stream if it cannot be encoded. */
void ps_message_send(struct rpc_stream *stream, const struct ps_message *message);

#endif
