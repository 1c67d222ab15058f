/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/progress_pace.h"

#define APART_MS (1000 / PROGRESS_WRITES_A_SECOND)

/* Takes a turn, not before `earliest_ms`. */
static int64_t take_turn(struct progress_pace *pace, int64_t earliest_ms)
{
    int64_t turn_ms = pace->free_ms > earliest_ms ? pace->free_ms : earliest_ms;
    pace->free_ms = turn_ms + APART_MS;
    return turn_ms;
}

/* A turn that was missed, since the pod could not be asked, is gone: all may have missed theirs. */
bool progress_pace_is_turn(struct progress_pace *pace, int64_t *turn_ms, int64_t now_ms)
{
    if (*turn_ms < now_ms - PROGRESS_INTERVAL_MS)
        *turn_ms = take_turn(pace, now_ms);
    if (now_ms < *turn_ms)
        return false;
    *turn_ms = take_turn(pace, now_ms + PROGRESS_INTERVAL_MS);
    return true;
}
