/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/coordination/message.h"

#include <string.h>

#include "common/crc32c.h"
#include "worker/comm/codec.h"
#include "worker/comm/little_endian.h"
#include "worker/comm/protocol.h"

#define MESSAGE_MAGIC 0x334d5843u /* "CXM3" */

static void codec_peer(struct codec *codec, struct collective_peer *peer)
{
    codec_text(codec, peer->address, sizeof(peer->address));
    codec_u16(codec, &peer->port);
}

static void codec_world(struct codec *codec, struct coordination_message *message)
{
    if (message->size > CREW_SIZE_MAX)
        codec->failed = true;
    for (unsigned i = 0; i < message->size && !codec->failed; i++) {
        codec_peer(codec, &message->peers[i]);
        codec_bool(codec, &message->receives[i]);
        codec_u32(codec, &message->members[i]);
    }
}

static void codec_incarnations(struct codec *codec, struct coordination_message *message)
{
    codec_u32(codec, &message->seats);
    if (message->seats > CREW_SIZE_MAX)
        codec->failed = true;
    for (unsigned i = 0; i < message->seats && !codec->failed; i++)
        codec_u32(codec, &message->incarnations[i]);
}

static void codec_message(struct codec *codec, struct coordination_message *message)
{
    uint32_t type = message->type, refusal = message->refusal;
    codec_u32(codec, &type);
    codec_u32(codec, &refusal);
    if (type == COORDINATION_NONE || type >= COORDINATION_TYPE_COUNT || refusal > REFUSE_ARITHMETIC)
        codec->failed = true;
    message->type = (enum coordination_message_type)type;
    message->refusal = (enum coordination_refusal)refusal;
    codec_text(codec, message->job_uid, sizeof(message->job_uid));
    codec_u32(codec, &message->generation.attempt);
    codec_u32(codec, &message->generation.incarnation);
    codec_u32(codec, &message->generation.counter);
    codec_u64(codec, &message->nonce);
    codec_u32(codec, &message->rank);
    codec_u32(codec, &message->size);
    codec_bool(codec, &message->holds_state);
    codec_bool(codec, &message->planned);
    codec_i64(codec, &message->step);
    codec_u32(codec, &message->logical_shards);
    codec_text(codec, message->arithmetic, sizeof(message->arithmetic));
    codec_u32(codec, &message->source);
    codec_u32(codec, &message->source_rank);
    codec_peer(codec, &message->peer);
    codec_text(codec, message->text, sizeof(message->text));
    if (message->type == COORDINATION_WORLD)
        codec_world(codec, message);
    if (message->type == COORDINATION_WORLD || message->type == COORDINATION_STANDING)
        codec_incarnations(codec, message);
}

static const char *message_name(enum coordination_message_type type)
{
    static const char *const names[] = {[COORDINATION_NONE] = "NONE",
#define X(name) [COORDINATION_##name] = #name,
                                        COORDINATION_MESSAGES(X)
#undef X
    };
    return type < COORDINATION_TYPE_COUNT ? names[type] : "unknown";
}

int coordination_message_encode(const struct coordination_message *message, struct buffer *out, struct error *error)
{
    unsigned char bytes[COORDINATION_MESSAGE_MAX];
    struct coordination_message copy = *message;
    struct codec codec = {.bytes = bytes, .length = sizeof(bytes) - 4, .at = CREW_PROTOCOL_HEAD, .writes = true};
    crew_protocol_put(bytes, MESSAGE_MAGIC);
    codec_message(&codec, &copy);
    if (codec.failed)
        return error_set(error, ERROR_INTERNAL, "internal error: a %s message cannot be encoded; please report it",
                         message_name(message->type));
    put_u32(bytes + codec.at, crc32c(0, bytes, codec.at));
    return buffer_append(out, bytes, codec.at + 4, error);
}

int coordination_message_decode(const void *bytes, size_t length, struct coordination_message *ret_message,
                                struct error *error)
{
    const unsigned char *start = bytes;
    if (length < CREW_PROTOCOL_HEAD + 4 || length > COORDINATION_MESSAGE_MAX || get_u32(start) != MESSAGE_MAGIC ||
        get_u32(start + length - 4) != crc32c(0, start, length - 4))
        return error_set(error, ERROR_CORRUPT, "a coordination message of %zu bytes fails its check", length);
    if (crew_protocol_check(start, MESSAGE_MAGIC, error) < 0)
        return -1;
    struct coordination_message message;
    memset(&message, 0, sizeof(message));
    struct codec codec = {.bytes = (unsigned char *)start, .length = length - 4, .at = CREW_PROTOCOL_HEAD};
    codec_message(&codec, &message);
    if (codec.failed || codec.at != codec.length)
        return error_set(error, ERROR_CORRUPT,
                         "internal error: a coordination message of %zu bytes has the right checksum but cannot "
                         "be decoded; please report it",
                         length);
    *ret_message = message;
    return 0;
}
