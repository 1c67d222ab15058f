/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether somebody set the machine's clock. Times in the API are the wall clock's;
 * how long something has lasted is not, when that clock was set meanwhile. So the
 * operator compares it with one that cannot be set, and knows by how much a time
 * that was noted before is to be moved.
 */
#ifndef COXSWAIN_CONTROLLER_CLOCK_WATCH_H
#define COXSWAIN_CONTROLLER_CLOCK_WATCH_H

#include <stdbool.h>
#include <stdint.h>

/* Less is a clock that is being slewed. */
#define CLOCK_SET_MIN_MS 500

/* Zeroed, until the first look. */
struct clock_watch {
    bool begun;
    int64_t ahead_ms; /* of the clock that cannot be set */
    int64_t set_ms;   /* by how much the wall clock was set, in all */
};

/* By how much the wall clock, `now_ms`, was set since the last look; 0: not, or that is left to the next look. `before_ms` and
 * `after_ms`, read around it: of a clock that never jumps and goes on while the machine sleeps. */
int64_t clock_watch_look(struct clock_watch *watch, int64_t before_ms, int64_t now_ms, int64_t after_ms);

#endif
