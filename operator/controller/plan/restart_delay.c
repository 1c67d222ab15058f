/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/restart_delay.h"

#include "common/fnv1a.h"

#define DOUBLINGS_MAX 20
#define RAN_WEIGHT 10
#define JITTER_PARTS 10

int64_t restart_delay_ms(int64_t events, int64_t ran_ms, uint64_t seed)
{
    if (events <= 1)
        return 0;
    int64_t doublings = events - 2 < DOUBLINGS_MAX ? events - 2 : DOUBLINGS_MAX;
    int64_t delay_ms = (int64_t)RESTART_DELAY_BASE_MS << doublings;
    if (delay_ms > RESTART_DELAY_CEILING_MS)
        delay_ms = RESTART_DELAY_CEILING_MS;
    if (ran_ms >= delay_ms / RAN_WEIGHT)
        return 0;
    delay_ms -= RAN_WEIGHT * ran_ms;
    return delay_ms + (int64_t)(seed % (uint64_t)(delay_ms / JITTER_PARTS + 1));
}

/* FNV-1a over the UID, then the incarnation mixed in as splitmix64 does. */
uint64_t restart_delay_seed(const char *job_uid, int64_t incarnation)
{
    uint64_t hash = fnv1a(FNV1A_START, job_uid);
    hash += (uint64_t)incarnation * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    return hash ^ hash >> 31;
}
