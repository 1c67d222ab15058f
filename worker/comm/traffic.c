/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/traffic.h"

#include <stdatomic.h>

static _Atomic int64_t sent;

void traffic_count(size_t bytes)
{
    atomic_fetch_add_explicit(&sent, (int64_t)bytes, memory_order_relaxed);
}

int64_t traffic_sent(void)
{
    return atomic_load_explicit(&sent, memory_order_relaxed);
}
