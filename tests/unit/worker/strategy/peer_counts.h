/* SPDX-License-Identifier: Apache-2.0
 *
 * What one seat has finished, by a hub's word.
 */
#ifndef COXSWAIN_TESTS_PEER_COUNTS_H
#define COXSWAIN_TESTS_PEER_COUNTS_H

#include "worker/strategy/peer_hub.h"

static inline int64_t count_of(struct peer_hub *hub, unsigned seat)
{
    int64_t counts[CREW_SIZE_MAX];
    (void)peer_hub_read_counts(hub, counts);
    return counts[seat];
}

#endif
