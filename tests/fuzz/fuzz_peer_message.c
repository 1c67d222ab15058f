/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages of a peer in a PeerToPeer crew. The test sets the magic number and the checksum, in order to reach the fields behind them. An
 * understood message must be the same when it is encoded again.
 */
#include <stdlib.h>
#include <string.h>

#include "common/crc32c.h"
#include "common/memory.h"
#include "worker/comm/little_endian.h"
#include "worker/comm/protocol.h"
#include "worker/strategy/peer_message.h"

static void send_back(const struct peer_message *message, size_t length)
{
    unsigned char *bytes = memory_allocate(1, length);
    struct peer_message again;
    size_t back = peer_message_encode(message, bytes, length); /* shorter when a text had a NUL in it */
    if (back == 0 || peer_message_decode(bytes, back, &again, NULL) < 0 || again.type != message->type ||
        again.count != message->count || again.offset != message->offset)
        abort();
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    struct peer_message message;
    if (length < 8 || length > 65536)
        return 0;
    unsigned char *bytes = memory_allocate(1, length + 4);
    memcpy(bytes + 8, data + 4, length - 4);
    crew_protocol_put(bytes, 0x31505843u);
    put_u32(bytes + length, crc32c(0, bytes, length));
    if (peer_message_decode(bytes, length + 4, &message, NULL) == 0)
        send_back(&message, length + 4);
    free(bytes);
    (void)peer_message_decode(data, length, &message, NULL);
    return 0;
}
