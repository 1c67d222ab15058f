/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/clock_watch.h"

/* Readings further apart are not compared: the process was not scheduled in between. */
#define MOMENT_MS 100

int64_t clock_watch_look(struct clock_watch *watch, int64_t before_ms, int64_t now_ms, int64_t after_ms)
{
    if (after_ms - before_ms > MOMENT_MS)
        return 0;
    int64_t ahead_ms = now_ms - after_ms, by_ms = watch->begun ? ahead_ms - watch->ahead_ms : 0;
    watch->begun = true;
    watch->ahead_ms = ahead_ms;
    if (by_ms < CLOCK_SET_MIN_MS && by_ms > -CLOCK_SET_MIN_MS)
        return 0;
    watch->set_ms += by_ms;
    return by_ms;
}
