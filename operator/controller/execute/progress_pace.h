/* SPDX-License-Identifier: Apache-2.0
 *
 * When each job's progress is asked for, and so written: turns a twentieth of a
 * second apart, handed out in the order in which they are taken. A lone job has
 * one a second; with more than twenty jobs the time between two turns of a job
 * stretches by itself, and at the start of an operator nobody's turn comes early.
 */
#ifndef COXSWAIN_CONTROLLER_PROGRESS_PACE_H
#define COXSWAIN_CONTROLLER_PROGRESS_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define PROGRESS_WRITES_A_SECOND 20
#define PROGRESS_INTERVAL_MS 1000

/* Zeroed at first. */
struct progress_pace {
    int64_t free_ms; /* the first time that nobody has */
};

/* Whether a job whose turn is at `turn_ms` (0: it has none) may use it now; else it has, or gets, a later one.
 * Used or not, `turn_ms` is then its next one. */
bool progress_pace_is_turn(struct progress_pace *pace, int64_t *turn_ms, int64_t now_ms);

#endif
