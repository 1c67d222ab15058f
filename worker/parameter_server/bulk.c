/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/bulk.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void bulk_send(struct rpc_stream *stream, const void *bytes, size_t length)
{
    for (size_t offset = 0; offset < length; offset += BULK_BODY_MAX) {
        size_t size = length - offset < BULK_BODY_MAX ? length - offset : BULK_BODY_MAX;
        unsigned char head[BULK_HEAD_BYTES];
        bulk_head_encode(&(struct bulk_head){.offset = offset, .total = length}, head);
        rpc_stream_send_bulk(stream, head, sizeof head, (const unsigned char *)bytes + offset, size);
    }
}

int bulk_inbox_expect(struct bulk_inbox *inbox, size_t length, void *where, struct error *error)
{
    if (where == NULL && inbox->capacity < length) {
        bulk_inbox_release(inbox);
        void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            return error_set(error, ERROR_NO_SPACE, "no memory for an update of %zu bytes", length);
        (void)madvise(memory, length, MADV_HUGEPAGE);
        inbox->bytes = memory;
        inbox->capacity = length;
        inbox->owned = true;
    } else if (where != NULL) {
        if (inbox->owned)
            bulk_inbox_release(inbox);
        inbox->bytes = where;
    }
    inbox->expected = length;
    inbox->received = 0;
    return 0;
}

/* The first bytes of a message, wherever its pieces are cut; returns how many there are. */
static size_t gather_head(const struct rpc_piece *pieces, unsigned count, unsigned char head[BULK_HEAD_BYTES])
{
    size_t length = 0;
    for (unsigned i = 0; i < count && length < BULK_HEAD_BYTES; i++) {
        size_t part = pieces[i].length < BULK_HEAD_BYTES - length ? pieces[i].length : BULK_HEAD_BYTES - length;
        memcpy(head + length, pieces[i].bytes, part);
        length += part;
    }
    return length;
}

int bulk_inbox_take(struct bulk_inbox *inbox, const struct rpc_piece *pieces, unsigned count, struct error *error)
{
    unsigned char start[BULK_HEAD_BYTES] = {0};
    size_t skip = gather_head(pieces, count, start);
    struct bulk_head head;
    if (!bulk_head_decode(start, skip, &head) || head.total != inbox->expected || head.offset != inbox->received)
        return error_set(error, ERROR_CORRUPT, "received tensor bytes that no message had announced");
    size_t to_skip = BULK_HEAD_BYTES;
    for (unsigned i = 0; i < count; i++) {
        size_t skipped = to_skip < pieces[i].length ? to_skip : pieces[i].length;
        size_t length = pieces[i].length - skipped;
        to_skip -= skipped;
        if (length > inbox->expected - inbox->received)
            return error_set(error, ERROR_CORRUPT, "received more tensor bytes than a message had announced");
        memcpy(inbox->bytes + inbox->received, (const unsigned char *)pieces[i].bytes + skipped, length);
        inbox->received += length;
    }
    return 0;
}

void bulk_inbox_clear(struct bulk_inbox *inbox)
{
    inbox->expected = inbox->received = 0;
}

void bulk_inbox_release(struct bulk_inbox *inbox)
{
    if (inbox->owned)
        munmap(inbox->bytes, inbox->capacity);
    *inbox = (struct bulk_inbox){0};
}

int bulk_or_message(const struct rpc_piece *pieces, unsigned count, bool *ret_bulk, struct ps_message *ret_message,
                    struct error *error)
{
    struct bulk_head head;
    unsigned char start[BULK_HEAD_BYTES] = {0};
    *ret_bulk = bulk_head_decode(start, gather_head(pieces, count, start), &head);
    if (*ret_bulk)
        return 0;
    SCOPED_BUFFER whole = BUFFER_INIT(PS_MESSAGE_MAX);
    for (unsigned i = 0; i < count; i++)
        if (buffer_append(&whole, pieces[i].bytes, pieces[i].length, error) < 0)
            return -1;
    return ps_message_decode(whole.data, whole.length, ret_message, error);
}

enum bulk_received bulk_receive(const struct rpc_piece *pieces, unsigned count, struct bulk_inbox *inbox,
                                struct ps_message *ret_message, struct error *error)
{
    bool bulk;
    if (bulk_or_message(pieces, count, &bulk, ret_message, error) < 0)
        return BULK_RECEIVED_NOTHING;
    if (!bulk)
        return BULK_RECEIVED_MESSAGE;
    if (inbox == NULL) {
        error_set(error, ERROR_CORRUPT, "received tensor bytes although no tensor is expected on this stream");
        return BULK_RECEIVED_NOTHING;
    }
    if (bulk_inbox_take(inbox, pieces, count, error) < 0)
        return BULK_RECEIVED_NOTHING;
    return bulk_inbox_is_full(inbox) ? BULK_RECEIVED_ALL : BULK_RECEIVED_BYTES;
}

void ps_message_answer_unread(struct rpc_stream *stream, const struct error *error)
{
    struct ps_message refusal = {.type = PS_REFUSED};
    if (error->kind != ERROR_UNSUPPORTED) {
        rpc_stream_close(stream);
        return;
    }
    snprintf(refusal.text, sizeof refusal.text, "%.250s", error->message);
    ps_message_send(stream, &refusal);
}

void ps_message_send(struct rpc_stream *stream, const struct ps_message *message)
{
    SCOPED_BUFFER bytes = BUFFER_INIT(PS_MESSAGE_MAX);
    if (ps_message_encode(message, &bytes, NULL) == 0)
        rpc_stream_send(stream, bytes.data, bytes.length);
    else
        rpc_stream_close(stream); /* the peer's silence would last for ever */
}
