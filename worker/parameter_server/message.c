/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/message.h"

#include <string.h>

#include "common/crc32c.h"
#include "common/memory.h"
#include "worker/comm/codec.h"
#include "worker/comm/little_endian.h"
#include "worker/comm/protocol.h"

#define MESSAGE_MAGIC 0x31535043u /* "CPS1" */
#define BULK_MAGIC 0x31425043u    /* "CPB1" */

void ps_message_release(struct ps_message *message)
{
    ticket_set_release(&message->tickets);
    row_set_release(&message->rows);
}

static void codec_set(struct codec *codec, struct ticket_set *set)
{
    uint32_t count = set->above_count;
    codec_i64(codec, &set->low);
    codec_u32(codec, &count);
    if (count > TICKET_SET_ABOVE_MAX || set->low < 0)
        codec->failed = true;
    if (!codec->writes)
        set->above_count = 0;
    int64_t last = set->low;
    for (uint32_t i = 0; i < count && !codec->failed; i++) {
        int64_t ticket = codec->writes ? set->above[i] : 0;
        codec_i64(codec, &ticket);
        codec->failed |= ticket <= last;
        last = ticket;
        if (!codec->writes && !codec->failed)
            ticket_set_add(set, ticket);
    }
}

static void codec_rows(struct codec *codec, struct row_set *set)
{
    uint32_t count = set->count;
    codec_bool(codec, &set->listed);
    codec_u32(codec, &count);
    if (count > ROW_SET_MAX || (count > 0 && !set->listed))
        codec->failed = true;
    for (uint32_t i = 0; i < count && !codec->failed; i++) {
        uint32_t row = codec->writes ? set->rows[i] : 0;
        codec_u32(codec, &row);
        if (!codec->writes && !codec->failed && !row_set_add(set, row))
            codec->failed = true;
    }
}

static void codec_crew(struct codec *codec, struct ps_message *message)
{
    codec_text(codec, message->job_uid, sizeof message->job_uid);
    codec_u32(codec, &message->generation.attempt);
    codec_u32(codec, &message->generation.incarnation);
    codec_u32(codec, &message->generation.counter);
    codec_u32(codec, &message->newest.attempt);
    codec_u32(codec, &message->newest.incarnation);
    codec_u32(codec, &message->index);
    codec_u32(codec, &message->server);
    codec_u64(codec, &message->nonce);
    codec_u32(codec, &message->digest);
    codec_u32(codec, &message->server_count);
    if (message->server_count > PS_SERVERS_MAX)
        codec->failed = true;
    for (uint32_t i = 0; i < message->server_count && !codec->failed; i++)
        codec_u64(codec, &message->nonces[i]);
}

static void codec_numbers(struct codec *codec, struct ps_message *message)
{
    int64_t *const integers[] = {&message->ticket,    &message->step,       &message->updates,       &message->empty,
                                 &message->correct,   &message->targets,    &message->examples,      &message->per_step,
                                 &message->base_step, &message->base_epoch, &message->base_consumed, &message->bytes,
                                 &message->clock};
    double *const reals[] = {&message->rate, &message->scale, &message->loss, &message->squares};
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++)
        codec_i64(codec, integers[i]);
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        codec_double(codec, reals[i]);
}

static void codec_message(struct codec *codec, struct ps_message *message)
{
    uint32_t type = message->type;
    codec_u32(codec, &type);
    if (type == PS_NONE || type >= PS_TYPE_COUNT)
        codec->failed = true;
    message->type = (enum ps_message_type)type;
    codec_crew(codec, message);
    codec_u32(codec, &message->lineage);
    codec_u32(codec, &message->verdict);
    codec_bool(codec, &message->holds_state);
    codec_bool(codec, &message->shared);
    codec_bool(codec, &message->pull);
    codec_bool(codec, &message->last);
    codec_bool(codec, &message->on_connection);
    codec_u32(codec, &message->port);
    codec_u64(codec, &message->token);
    codec_numbers(codec, message);
    codec_u32(codec, &message->crc);
    codec_text(codec, message->path, sizeof message->path);
    codec_text(codec, message->text, sizeof message->text);
    codec_set(codec, &message->tickets);
    codec_rows(codec, &message->rows);
}

#define FIXED_BYTES_MAX 4096

static const char *message_name(enum ps_message_type type)
{
    static const char *const names[] = {[PS_NONE] = "NONE",
#define X(name) [PS_##name] = #name,
                                        PS_MESSAGES(X)
#undef X
    };
    return type < PS_TYPE_COUNT ? names[type] : "unknown";
}

int ps_message_encode(const struct ps_message *message, struct buffer *out, struct error *error)
{
    size_t capacity =
        FIXED_BYTES_MAX + message->tickets.above_count * sizeof(int64_t) + message->rows.count * sizeof(uint32_t);
    SCOPED_FREE unsigned char *bytes = memory_allocate(capacity, 1);
    struct ps_message copy = *message;
    struct codec codec = {.bytes = bytes, .length = capacity - 4, .at = CREW_PROTOCOL_HEAD, .writes = true};
    crew_protocol_put(bytes, MESSAGE_MAGIC);
    codec_message(&codec, &copy);
    if (codec.failed)
        return error_set(error, ERROR_INTERNAL, "internal error: a %s message cannot be encoded; please report it",
                         message_name(message->type));
    put_u32(bytes + codec.at, crc32c(0, bytes, codec.at));
    return buffer_append(out, bytes, codec.at + 4, error);
}

int ps_message_decode(const void *bytes, size_t length, struct ps_message *ret_message, struct error *error)
{
    const unsigned char *start = bytes;
    if (length < CREW_PROTOCOL_HEAD + 4 || length > PS_MESSAGE_MAX || get_u32(start) != MESSAGE_MAGIC ||
        get_u32(start + length - 4) != crc32c(0, start, length - 4))
        return error_set(error, ERROR_CORRUPT, "a message about parameters of %zu bytes fails its check", length);
    if (crew_protocol_check(start, MESSAGE_MAGIC, error) < 0)
        return -1;
    struct ps_message message = {0};
    struct codec codec = {.bytes = (unsigned char *)start, .length = length - 4, .at = CREW_PROTOCOL_HEAD};
    codec_message(&codec, &message);
    if (codec.failed || codec.at != codec.length) {
        ps_message_release(&message);
        return error_set(
            error, ERROR_CORRUPT,
            "internal error: a ps message of %zu bytes has the right checksum but cannot be decoded; please report it",
            length);
    }
    *ret_message = message;
    return 0;
}

void bulk_head_encode(const struct bulk_head *head, unsigned char bytes[BULK_HEAD_BYTES])
{
    put_u32(bytes, BULK_MAGIC);
    put_u32(bytes + 4, 0);
    put_u64(bytes + 8, head->offset);
    put_u64(bytes + 16, head->total);
}

bool bulk_head_decode(const unsigned char *bytes, size_t length, struct bulk_head *ret_head)
{
    if (length < BULK_HEAD_BYTES || get_u32(bytes) != BULK_MAGIC)
        return false;
    *ret_head = (struct bulk_head){.offset = get_u64(bytes + 8), .total = get_u64(bytes + 16)};
    return true;
}
