/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/backoff.h"

#include <sys/random.h>

#include "common/clock.h"

/* xorshift64* (Vigna 2016): the numbers need to be spread, not secret. */
static uint64_t random_next(void)
{
    static uint64_t state;
    if (state == 0 && getrandom(&state, sizeof state, GRND_NONBLOCK) != (ssize_t)sizeof state)
        state = (uint64_t)clock_monotonic_ns() | 1;
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1dULL;
}

int64_t jitter_between(int64_t low, int64_t high)
{
    return high <= low ? low : low + (int64_t)(random_next() % (uint64_t)(high - low + 1));
}

int64_t backoff_delay_ms(int64_t base_ms, int64_t ceiling_ms, unsigned attempt)
{
    int64_t delay = base_ms;
    for (unsigned i = 0; i < attempt && delay < ceiling_ms; i++)
        delay *= 2;
    if (delay > ceiling_ms)
        delay = ceiling_ms;
    return jitter_between(delay / 2, delay);
}
