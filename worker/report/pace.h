/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures how fast training proceeds: step time, throughput, time remaining and goodput. Rates
 * are exponential moving averages over about the last two seconds spent in steps, so that
 * a pause does not count as slow steps. Goodput is the share of all time since the start that went
 * into steps that were kept.
 */
#ifndef COXSWAIN_REPORT_PACE_H
#define COXSWAIN_REPORT_PACE_H

#include <stdint.h>

#define PACE_MARKS_MAX 512

/* The time spent in kept steps up to and including `step`. */
struct pace_mark {
    int64_t step, kept_ns;
};

struct pace {
    int64_t started_ns;    /* clock_monotonic_ns at the start of the process's work */
    struct pace_mark last; /* the last applied step that was not rolled back */
    /* Older marks, at least `stride` steps apart; time is interpolated between two of them. */
    struct pace_mark marks[PACE_MARKS_MAX];
    int64_t stride;
    unsigned mark_count;
    double step_seconds, examples_per_second; /* 0 until the first step */
    int64_t examples, stepping_ns;            /* of all steps, also of those that were rolled back */
};

void pace_start(struct pace *pace, int64_t now_ns);
/* Records `steps` applied steps, the last of them `step`, which took `ns` in all for `examples`.
 * If they start before the last recorded step, training was rolled back: the time of the steps
 * from there on no longer counts as kept. */
void pace_add(struct pace *pace, int64_t step, int64_t ns, int64_t steps, int64_t examples);
/* Returns the estimated seconds for `steps_left` steps; -1 before the first step. */
int64_t pace_seconds_remaining(const struct pace *pace, int64_t steps_left);
double pace_goodput(const struct pace *pace, int64_t now_ns);

#endif
