/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/report/pace.h"

#include <math.h>

#define RATE_WINDOW 2.0 /* seconds */

void pace_start(struct pace *pace, int64_t now_ns)
{
    *pace = (struct pace){.started_ns = now_ns, .stride = 1};
}

/* Returns the time in kept steps at a step that training was rolled back to. */
static int64_t kept_at(const struct pace *pace, int64_t step)
{
    struct pace_mark after = pace->last;
    for (unsigned i = pace->mark_count; i-- > 0; after = pace->marks[i]) {
        struct pace_mark before = pace->marks[i];
        if (before.step > step)
            continue;
        double part = (double)(step - before.step) / (double)(after.step - before.step);
        return before.kept_ns + (int64_t)(part * (double)(after.kept_ns - before.kept_ns));
    }
    return 0;
}

/* Drops every other mark when the array is full. */
static void thin_out(struct pace *pace)
{
    pace->stride *= 2;
    for (unsigned i = 0; 2 * i < pace->mark_count; i++)
        pace->marks[i] = pace->marks[2 * i];
    pace->mark_count = (pace->mark_count + 1) / 2;
}

static void mark(struct pace *pace)
{
    if (pace->mark_count > 0 && pace->last.step - pace->marks[pace->mark_count - 1].step < pace->stride)
        return;
    if (pace->mark_count == PACE_MARKS_MAX)
        thin_out(pace);
    pace->marks[pace->mark_count++] = pace->last;
}

static void begin_at(struct pace *pace, int64_t step)
{
    if (step < pace->last.step)
        pace->last.kept_ns = kept_at(pace, step);
    pace->last.step = step;
    while (pace->mark_count > 0 && pace->marks[pace->mark_count - 1].step >= step)
        pace->mark_count--;
    mark(pace);
}

void pace_add(struct pace *pace, int64_t step, int64_t ns, int64_t steps, int64_t examples)
{
    double seconds = (double)(ns > 0 ? ns : 1) / 1e9;
    double rate = (double)examples / seconds;
    double weight = pace->step_seconds == 0 ? 1 : 1 - exp(-seconds / RATE_WINDOW);
    pace->step_seconds += weight * (seconds / (double)steps - pace->step_seconds);
    pace->examples_per_second += weight * (rate - pace->examples_per_second);
    pace->examples += examples;
    pace->stepping_ns += ns;
    begin_at(pace, step - steps);
    pace->last = (struct pace_mark){step, pace->last.kept_ns + ns};
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
    return elapsed > 0 ? fmin(1, (double)pace->last.kept_ns / (double)elapsed) : 0;
}
