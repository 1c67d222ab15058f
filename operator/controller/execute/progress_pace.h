/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits how often the operator polls jobs for progress (progress_poll.h), so that at most twenty
 * status writes a second follow from the answers of all jobs. Turns are 50 ms apart and are handed
 * out in the order in which jobs ask for them. A single job has one turn a second; with more than
 * twenty jobs, the time between two turns of a job grows accordingly. When the operator starts, the
 * first turns of all jobs are spread in the same way.
 */
#ifndef COXSWAIN_CONTROLLER_PROGRESS_PACE_H
#define COXSWAIN_CONTROLLER_PROGRESS_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define PROGRESS_WRITES_A_SECOND 20
#define PROGRESS_INTERVAL_MS 1000

/* Zeroed: no turn has been handed out. */
struct progress_pace {
    int64_t free_ms; /* the earliest turn that no job has */
};

/* Returns whether a job's turn, at `turn_ms` (0: it has none yet), has come. Sets `turn_ms` to the
 * job's next turn. */
bool progress_pace_is_turn(struct progress_pace *pace, int64_t *turn_ms, int64_t now_ms);

#endif
