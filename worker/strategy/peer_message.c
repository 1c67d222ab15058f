/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/peer_message.h"

#include <string.h>

#include "common/crc32c.h"
#include "worker/comm/codec.h"
#include "worker/comm/little_endian.h"
#include "worker/comm/protocol.h"

#define MESSAGE_MAGIC 0x31505843u /* "CXP1" */

static bool carries_floats(enum peer_message_type type)
{
    return type == PEER_UPDATE || type == PEER_AVERAGE || type == PEER_STATE;
}

static void codec_counts(struct codec *codec, struct peer_message *message)
{
    codec_u32(codec, &message->seats);
    if (message->seats > CREW_SIZE_MAX)
        codec->failed = true;
    for (unsigned i = 0; i < message->seats && !codec->failed; i++)
        codec_i64(codec, &message->counts[i]);
}

static void codec_part(struct codec *codec, struct peer_message *message)
{
    codec_u32(codec, &message->vector);
    codec_bool(codec, &message->last);
    codec_u64(codec, &message->offset);
    codec_u64(codec, &message->count);
    if (message->vector >= PEER_VECTORS_MAX || message->count > PEER_PART_MAX)
        codec->failed = true;
    if (message->last && !codec->failed)
        codec_counts(codec, message);
    if (message->last && message->type == PEER_UPDATE)
        codec_i64(codec, &message->from);
}

static void codec_head(struct codec *codec, struct peer_message *message)
{
    uint32_t type = message->type;
    codec_u32(codec, &type);
    if (type == PEER_NONE || type >= PEER_TYPE_COUNT)
        codec->failed = true;
    message->type = (enum peer_message_type)type;
    codec_u64(codec, &message->serial);
    if (message->type == PEER_HELLO) {
        codec_text(codec, message->job_uid, sizeof(message->job_uid));
        codec_u32(codec, &message->attempt);
        codec_u32(codec, &message->incarnation);
        codec_u32(codec, &message->seat);
    }
    if (message->type == PEER_COUNTS)
        codec_counts(codec, message);
    if (carries_floats(message->type))
        codec_part(codec, message);
}

size_t peer_message_encode(const struct peer_message *message, unsigned char *bytes, size_t room)
{
    struct peer_message copy = *message;
    size_t floats = carries_floats(message->type) ? message->count * sizeof(float) : 0;
    if (room < CREW_PROTOCOL_HEAD + 4)
        return 0;
    struct codec codec = {.bytes = bytes, .length = room - 4, .at = CREW_PROTOCOL_HEAD, .writes = true};
    crew_protocol_put(bytes, MESSAGE_MAGIC);
    codec_head(&codec, &copy);
    if (codec.failed || codec.length - codec.at < floats)
        return 0;
    if (floats > 0)
        memcpy(bytes + codec.at, message->floats, floats);
    size_t length = codec.at + floats;
    put_u32(bytes + length, crc32c(0, bytes, length));
    return length + 4;
}

int peer_message_decode(const void *bytes, size_t length, struct peer_message *ret_message, struct error *error)
{
    const unsigned char *start = bytes;
    if (length < CREW_PROTOCOL_HEAD + 4 || length > RPC_MESSAGE_MAX || get_u32(start) != MESSAGE_MAGIC ||
        get_u32(start + length - 4) != crc32c(0, start, length - 4))
        return error_set(error, ERROR_CORRUPT, "a message of %zu bytes from a peer fails its check", length);
    if (crew_protocol_check(start, MESSAGE_MAGIC, error) < 0)
        return -1;
    struct peer_message message;
    memset(&message, 0, sizeof(message));
    struct codec codec = {.bytes = (unsigned char *)start, .length = length - 4, .at = CREW_PROTOCOL_HEAD};
    codec_head(&codec, &message);
    size_t floats = codec.failed ? 0 : (size_t)message.count * sizeof(float);
    if (codec.failed || codec.length - codec.at != floats)
        return error_set(error, ERROR_CORRUPT,
                         "internal error: a PeerToPeer message of %zu bytes has the right checksum but cannot "
                         "be decoded; please report it",
                         length);
    message.floats = floats > 0 ? (const float *)(const void *)(start + codec.at) : NULL;
    *ret_message = message;
    return 0;
}
