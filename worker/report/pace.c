/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/report/pace.h"

#include <math.h>

#define RATE_WINDOW 2.0 /* seconds */

void pace_start(struct pace *pace, int64_t now_ns)
{
    *pace = (struct pace){.started_ns = now_ns};
}

void pace_add(struct pace *pace, int64_t ns, int64_t steps, int64_t examples)
{
    double seconds = (double)(ns > 0 ? ns : 1) / 1e9;
    double rate = (double)examples / seconds;
    double weight = pace->step_seconds == 0 ? 1 : 1 - exp(-seconds / RATE_WINDOW);
    pace->step_seconds += weight * (seconds / (double)steps - pace->step_seconds);
    pace->examples_per_second += weight * (rate - pace->examples_per_second);
    pace->kept_ns += ns;
}

int64_t pace_seconds_remaining(const struct pace *pace, int64_t steps_left)
{
    if (pace->step_seconds == 0)
        return -1;
    return (int64_t)ceil(pace->step_seconds * (double)steps_left);
}

double pace_goodput(const struct pace *pace, int64_t now_ns)
{
    int64_t elapsed = now_ns - pace->started_ns;
    return elapsed > 0 ? fmin(1, (double)pace->kept_ns / (double)elapsed) : 0;
}
