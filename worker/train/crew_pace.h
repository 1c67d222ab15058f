/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums up how long each member of a crew takes for its own part of the steps, and formats the line that the chief prints every few
 * seconds:
 *
 *   pace of the crew to step 120: 13.4 ms a step; own parts worker 0 11.2 ms, worker 1 12.0 ms
 *
 * The rest of a step is waiting for others and communication. `cox ui` draws the timeline of the crew from these lines
 * (operator/cli/chief_line.h). Reads no clock.
 */
#ifndef COXSWAIN_TRAIN_CREW_PACE_H
#define COXSWAIN_TRAIN_CREW_PACE_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/coordination/member.h"
#include "worker/strategy/strategy.h"

#define CREW_PACE_MEMBERS 64 /* larger crews: the line names the first ones; stragglers are reported anyway */
#define CREW_PACE_FIRST_NS 1000000000LL
#define CREW_PACE_NEXT_NS 5000000000LL
#define CREW_PACE_TEXT_MAX 2048

/* Zero-initialised: nothing is measured yet. */
struct crew_pace {
    int64_t printed_ns;            /* when the last line was printed; 0: never */
    int64_t start_ns;              /* when the first of the summed steps began; 0: there is none yet */
    int64_t steps, step_ns;        /* the number of summed steps, and the time that they took */
    int64_t own_ns[CREW_SIZE_MAX]; /* the time of each seat's own parts in the summed steps; 0: not measured */
};

/* Forgets the sums, because the crew has changed. */
void crew_pace_clear(struct crew_pace *pace);
/* Adds `steps` steps that took `step_ns` together. */
void crew_pace_add(struct crew_pace *pace, const struct world *world, const struct strategy_result *result,
                   int64_t steps, int64_t step_ns, int64_t now_ns);
/* If a line is due, forgets the sums; and if at least two members were measured, formats the line and returns true. Else returns false. */
bool crew_pace_line(struct crew_pace *pace, const struct crew_seat *seats, int64_t step, int64_t now_ns,
                    char text[CREW_PACE_TEXT_MAX]);

#endif
