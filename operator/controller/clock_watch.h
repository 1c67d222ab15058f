/* SPDX-License-Identifier: Apache-2.0
 *
 * Detects that the machine's wall clock was set, for the controller of jobs. Times in the API are
 * wall-clock times, so a duration computed from them is wrong if the clock was set in between.
 * Every half second and before each reconcile, the controller calls clock_watch_look, which
 * compares the wall clock with a clock that cannot be set. If the wall clock was set, the
 * controller shifts the times that it had noted before by the returned difference (moved_times.h).
 */
#ifndef COXSWAIN_CONTROLLER_CLOCK_WATCH_H
#define COXSWAIN_CONTROLLER_CLOCK_WATCH_H

#include <stdbool.h>
#include <stdint.h>

/* A smaller difference is taken for slewing and ignored. */
#define CLOCK_SET_MIN_MS 500

/* Zeroed before the first clock_watch_look. */
struct clock_watch {
    bool begun;
    int64_t ahead_ms; /* wall clock minus the clock that cannot be set */
    int64_t set_ms;   /* total by which the wall clock was set */
};

/* Returns by how much the wall clock was set since the last call; 0: it was not, or the readings
 * lie too far apart to tell, and the next call finds out. `now_ms` is the wall clock; `before_ms`
 * and `after_ms` are readings, just before and after it, of a clock that never jumps and continues
 * while the machine sleeps. */
int64_t clock_watch_look(struct clock_watch *watch, int64_t before_ms, int64_t now_ms, int64_t after_ms);

#endif
