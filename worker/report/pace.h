/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast it goes and how long it will take. Rates are exponential means over
 * about the last RATE_WINDOW of stepping time, so that a pause does not count as slow
 * steps; goodput is the share of all time since the start that went into steps
 * that were kept.
 */
#ifndef COXSWAIN_REPORT_PACE_H
#define COXSWAIN_REPORT_PACE_H

#include <stdint.h>

struct pace {
    int64_t started_ns;                       /* clock_monotonic_ns at the start of the process's work */
    int64_t kept_ns;                          /* spent in steps that were applied */
    double step_seconds, examples_per_second; /* 0 until the first step */
};

void pace_start(struct pace *pace, int64_t now_ns);
/* So many applied steps that took `ns` for `examples`. */
void pace_add(struct pace *pace, int64_t ns, int64_t steps, int64_t examples);
/* -1 while nothing is known. */
int64_t pace_seconds_remaining(const struct pace *pace, int64_t steps_left);
double pace_goodput(const struct pace *pace, int64_t now_ns);

#endif
