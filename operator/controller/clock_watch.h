/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether somebody set the machine's clock. Times in the API are the wall clock's;
 * how long something has lasted is not, when that clock was set meanwhile. So the
 * operator compares it with one that cannot be set, and knows by how much a time
 * that was noted before is to be moved.
 */
#ifndef COXSWAIN_CONTROLLER_CLOCK_WATCH_H
#define COXSWAIN_CONTROLLER_CLOCK_WATCH_H

#include <stdint.h>

/* Less is a clock that is being slewed. */
#define CLOCK_SET_MIN_MS 500

struct clock_watch {
    int64_t ahead_ms; /* of the clock that cannot be set */
    int64_t set_ms;   /* by how much the wall clock was set, in all */
};

/* `elapsed_ms`: of a clock that never jumps and goes on while the machine sleeps. */
void clock_watch_init(struct clock_watch *watch, int64_t now_ms, int64_t elapsed_ms);
/* By how much the wall clock was set since the last look; 0: not. */
int64_t clock_watch_look(struct clock_watch *watch, int64_t now_ms, int64_t elapsed_ms);

#endif
