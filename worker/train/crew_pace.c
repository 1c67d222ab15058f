/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/crew_pace.h"

#include <stdio.h>
#include <string.h>

void crew_pace_clear(struct crew_pace *pace)
{
    *pace = (struct crew_pace){.printed_ns = pace->printed_ns};
}

/* Returns the time of a member's own parts in all steps of the result, which has, for several steps, the mean of all but the longest one, and
 * the longest one. */
static int64_t own_part(const struct strategy_result *result, unsigned rank)
{
    return result->own_steps > 1 ? result->own_ns[rank] * (result->own_steps - 1) + result->longest_ns[rank]
                                 : result->own_ns[rank];
}

void crew_pace_add(struct crew_pace *pace, const struct world *world, const struct strategy_result *result,
                   int64_t steps, int64_t step_ns, int64_t now_ns)
{
    if (pace->start_ns == 0)
        pace->start_ns = now_ns - step_ns;
    pace->steps += steps;
    pace->step_ns += step_ns;
    for (unsigned rank = 0; rank < world->size; rank++)
        pace->own_ns[world->members[rank]] += own_part(result, rank);
}

bool crew_pace_line(struct crew_pace *pace, const struct crew_seat *seats, int64_t step, int64_t now_ns,
                    char text[CREW_PACE_TEXT_MAX])
{
    int64_t wait_ns = pace->printed_ns == 0 ? CREW_PACE_FIRST_NS : CREW_PACE_NEXT_NS;
    if (pace->steps == 0 || now_ns - pace->start_ns < wait_ns)
        return false;
    unsigned count = 0;
    double steps = (double)pace->steps * 1e6;
    int length = snprintf(text, CREW_PACE_TEXT_MAX, "pace of the crew to step %lld: %.1f ms a step; own parts",
                          (long long)step, (double)pace->step_ns / steps);
    for (unsigned seat = 0; seat < CREW_SIZE_MAX && count < CREW_PACE_MEMBERS; seat++)
        if (pace->own_ns[seat] > 0)
            length += snprintf(text + length, CREW_PACE_TEXT_MAX - (size_t)length, "%s %.8s %u %.1f ms",
                               count++ > 0 ? "," : "", seats[seat].role, seats[seat].index,
                               (double)pace->own_ns[seat] / steps);
    crew_pace_clear(pace);
    if (count < 2)
        return false;
    pace->printed_ns = now_ns;
    return true;
}
