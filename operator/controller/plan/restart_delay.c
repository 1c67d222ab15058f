/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/restart_delay.h"

#include "common/fnv1a.h"

#define DOUBLINGS_MAX 20
#define RAN_WEIGHT 10
#define JITTER_PARTS 10

/* 0 the first time. */
static int64_t doubled_ms(int64_t base_ms, int64_t times)
{
    if (times <= 1)
        return 0;
    int64_t delay_ms = base_ms << (times - 2 < DOUBLINGS_MAX ? times - 2 : DOUBLINGS_MAX);
    return delay_ms < RESTART_DELAY_CEILING_MS ? delay_ms : RESTART_DELAY_CEILING_MS;
}

static int64_t with_jitter(int64_t delay_ms, uint64_t seed)
{
    return delay_ms + (int64_t)(seed % (uint64_t)(delay_ms / JITTER_PARTS + 1));
}

int64_t restart_delay_ms(int64_t events, int64_t ran_ms, uint64_t seed)
{
    int64_t delay_ms = doubled_ms(RESTART_DELAY_BASE_MS, events);
    return ran_ms >= delay_ms / RAN_WEIGHT ? 0 : with_jitter(delay_ms - RAN_WEIGHT * ran_ms, seed);
}

int64_t restart_delay_failure_ms(int64_t failures, int64_t ran_ms, uint64_t seed)
{
    return ran_ms >= RESTART_DELAY_RECOVERED_MS ? 0 : with_jitter(doubled_ms(RESTART_DELAY_FAILURE_MS, failures), seed);
}

/* FNV-1a over the UID, then the incarnation mixed in as splitmix64 does. */
uint64_t restart_delay_seed(const char *job_uid, int64_t incarnation)
{
    uint64_t hash = fnv1a(FNV1A_START, job_uid);
    hash += (uint64_t)incarnation * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    return hash ^ hash >> 31;
}
