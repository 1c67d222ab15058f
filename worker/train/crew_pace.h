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

#define CREW_PACE_MEMBERS 64 /* of larger crews the line names the first ones; stragglers are named anyway */
#define CREW_PACE_FIRST_NS 1000000000LL
#define CREW_PACE_NEXT_NS 5000000000LL
#define CREW_PACE_TEXT_MAX 2048

/* Zero-initialised: nothing is measured yet. */
struct crew_pace {
    int64_t printed_ns; /* when the last line was; 0: none */
    int64_t begun_ns;   /* when what is summed up began; 0: not yet */
    int64_t steps, step_ns;
    int64_t own_ns[CREW_SIZE_MAX]; /* by seat; 0: not measured */
};

/* Forgets what is summed up: the crew has changed. */
void crew_pace_clear(struct crew_pace *pace);
/* Adds `steps` steps that took `step_ns` together. */
void crew_pace_add(struct crew_pace *pace, const struct world *world, const struct strategy_result *result,
                   int64_t steps, int64_t step_ns, int64_t now_ns);
/* Formats the line and forgets what it says, if one is due and at least two members were measured; else returns false. */
bool crew_pace_line(struct crew_pace *pace, const struct crew_seat *seats, int64_t step, int64_t now_ns,
                    char text[CREW_PACE_TEXT_MAX]);

#endif
