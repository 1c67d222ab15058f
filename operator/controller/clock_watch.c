/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/clock_watch.h"

void clock_watch_init(struct clock_watch *watch, int64_t now_ms, int64_t elapsed_ms)
{
    *watch = (struct clock_watch){.ahead_ms = now_ms - elapsed_ms};
}

int64_t clock_watch_look(struct clock_watch *watch, int64_t now_ms, int64_t elapsed_ms)
{
    int64_t by_ms = now_ms - elapsed_ms - watch->ahead_ms;
    watch->ahead_ms += by_ms;
    if (by_ms < CLOCK_SET_MIN_MS && by_ms > -CLOCK_SET_MIN_MS)
        return 0;
    watch->set_ms += by_ms;
    return by_ms;
}
