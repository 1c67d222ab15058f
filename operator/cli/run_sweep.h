/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints how a TrainingSweep ended, at the end of `cox run`: the result, the files that are left, and the
 * command to run next. run.c calls it once, when the sweep is over or the user has interrupted.
 */
#ifndef COXSWAIN_CLI_RUN_SWEEP_H
#define COXSWAIN_CLI_RUN_SWEEP_H

#include "operator/cli/manifest.h"
#include "operator/cli/run.h"
#include "operator/cli/sweep_follow.h"

/* The sweep that has been run, and the control plane or cluster that ran it. */
struct run_place {
    const struct run_options *options;
    const struct manifest *manifest; /* of the sweep and of the training classes in its file */
    const char *name_space;
    const char *state; /* of the embedded control plane; NULL: a cluster */
    bool interrupted;
    bool was_over; /* the sweep had ended before the command began */
};

/* Prints how the sweep ended. In the embedded control plane, which ends with this command, also writes the trials and the best job
 * into the state directory. The best job's file also has the training classes of the sweep's file. A file that cannot be written is named
 * on stderr. */
void run_sweep_conclude(const struct run_place *place, struct sweep_follow *follow, struct run_outcome *ret_outcome);

#endif
