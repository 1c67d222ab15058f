/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/strategy/round_pace.h"

static void add(struct round_pace *pace, int64_t ns)
{
    pace->total_ns += ns;
    pace->longest_ns = ns > pace->longest_ns ? ns : pace->longest_ns;
}

void round_pace_add_step(struct round_pace *pace, int64_t ns)
{
    pace->steps++;
    add(pace, ns);
}

void round_pace_add_freeze(struct round_pace *pace, int64_t ns)
{
    add(pace, ns);
}

int64_t round_pace_mean_ns(const struct round_pace *pace)
{
    return pace->steps > 1 ? (pace->total_ns - pace->longest_ns) / (pace->steps - 1) : pace->total_ns;
}
