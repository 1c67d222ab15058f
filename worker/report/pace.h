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

#define PACE_MARKS_MAX 512

/* The time that had gone into kept steps by then. */
struct pace_mark {
    int64_t step, kept_ns;
};

struct pace {
    int64_t started_ns;    /* clock_monotonic_ns at the start of the process's work */
    struct pace_mark last; /* the last applied step that still stands */
    struct pace_mark
        marks[PACE_MARKS_MAX]; /* older ones, at least `stride` steps apart; between two, steps took equally long */
    int64_t stride;
    unsigned mark_count;
    double step_seconds, examples_per_second; /* 0 until the first step */
};

void pace_start(struct pace *pace, int64_t now_ns);
/* So many applied steps, the last of them `step`, that took `ns` for `examples`. Those from where they begin that were there before
 * are lost: they were taken again. */
void pace_add(struct pace *pace, int64_t step, int64_t ns, int64_t steps, int64_t examples);
/* -1 while nothing is known. */
int64_t pace_seconds_remaining(const struct pace *pace, int64_t steps_left);
double pace_goodput(const struct pace *pace, int64_t now_ns);

#endif
