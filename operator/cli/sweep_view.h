/* SPDX-License-Identifier: Apache-2.0
 *
 * Holds a TrainingSweep and its trials (trial_line.h) in the form in which `cox` shows them, and computes
 * what is derived from both: the state, the best trial and the time left. sweep_follow.c and command_sweep.c
 * fill a view; sweep_print.h and sweep_export.h read it. The view borrows the sweep and the trials whose jobs
 * exist, which must outlive it, and owns the lines that follow from the sweep's results.
 */
#ifndef COXSWAIN_CLI_SWEEP_VIEW_H
#define COXSWAIN_CLI_SWEEP_VIEW_H

#include <stddef.h>

#include "operator/cli/trial_line.h"

/* Zero it first; release with sweep_view_release. */
struct sweep_view {
    const struct training_sweep *sweep; /* borrowed */
    const struct trial_line **trials;   /* by number after sweep_view_complete */
    size_t count, capacity;
    bool interrupted;        /* the sweep is not over, but its `cox run` has ended */
    const char *again;       /* if it is interrupted: the command that continues it, borrowed; NULL: unknown */
    struct trial_line **own; /* lines that sweep_view_complete has made */
    size_t own_count;
};

void sweep_view_add(struct sweep_view *view, const struct trial_line *line);
/* Adds the trials that are over and whose jobs are gone, as the sweep's results have them, and sorts all trials. Trials that were stopped
 * early or are paused are shown as the results have them even if their jobs exist. */
void sweep_view_complete(struct sweep_view *view);
void sweep_view_release(struct sweep_view *view);

bool sweep_view_is_best(const struct sweep_view *view, const struct trial_line *line);
/* While the sweep is not over, returns the trial with the best value so far if that trial has not succeeded, such as one that runs or is
 * paused; NULL: none is better than the best that has succeeded. */
const struct trial_line *sweep_view_leader(const struct sweep_view *view);
/* Returns whether the trials are a population's, which go on from each other's checkpoints. */
bool sweep_has_parents(const struct training_sweep *sweep);
/* Returns the number of the trial from whose checkpoint a trial of a population goes on; -1: it does not. */
int64_t sweep_view_parent(const struct sweep_view *view, const struct trial_line *line);

/* Returns the type of the first condition of a sweep that is True, otherwise "Pending". */
const char *sweep_state(const struct training_sweep *sweep);
/* Returns whether the sweep is complete or has failed. */
bool sweep_is_over(const struct training_sweep *sweep);
/* Returns how many trials have succeeded, failed, diverged or been stopped early, and of a sweep that is over also those that stay
 * paused. */
int64_t sweep_done(const struct training_sweep *sweep);
/* Returns the last part of a parameter's name if no other parameter has the same, such as learningRate, otherwise the whole name. */
const char *sweep_parameter_label(const struct training_sweep *sweep, unsigned parameter);

/* Estimates the time left from the trials that have succeeded or, as long as none has, from what those that run expect of themselves: the
 * mean duration for each trial that has not started. -1: unknown, or the sweep does not run. */
int64_t sweep_view_left_ms(const struct sweep_view *view, int64_t now_ms);

#endif
