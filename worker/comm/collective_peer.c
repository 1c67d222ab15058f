/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "common/buffer.h"
#include "worker/comm/collective.h"

#define NAMED_MAX 6

void collective_peer_describe(const struct collective_peer *peers, unsigned rank, char text[COLLECTIVE_PEER_TEXT_MAX])
{
    const struct collective_peer *peer = &peers[rank];
    snprintf(text, COLLECTIVE_PEER_TEXT_MAX, "rank %u (%s%s%s:%u)", rank, peer->name, peer->name[0] ? ", " : "",
             peer->address, peer->port);
}

void collective_peers_describe(const struct collective_peer *peers, const bool *which, unsigned size,
                               struct buffer *text)
{
    unsigned count = 0;
    for (unsigned rank = 0; rank < size; rank++) {
        char one[COLLECTIVE_PEER_TEXT_MAX];
        if (!which[rank] || count++ >= NAMED_MAX)
            continue;
        collective_peer_describe(peers, rank, one);
        buffer_format(text, "%s%s", count > 1 ? ", " : "", one);
    }
    if (count > NAMED_MAX)
        buffer_format(text, " and %u more", count - NAMED_MAX);
}
