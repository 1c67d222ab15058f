/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a TrainingSweep and the jobs of its trials from the cluster, as the input of `cox sweep` and `cox ui`. Makes
 * blocking requests, one after another.
 */
#ifndef COXSWAIN_CLI_SWEEP_READ_H
#define COXSWAIN_CLI_SWEEP_READ_H

#include "operator/cli/cluster.h"
#include "operator/cli/sweep_view.h"

/* Reads a sweep; what an operator of another version has accepted is read, too. Release it with training_sweep_release. `ret_object`,
 * unless it is NULL, gets what the API server answered; free it with json_free. */
int sweep_read(struct cluster *cluster, const char *name, struct training_sweep *ret_sweep, struct json **ret_object,
               struct error *error);

/* The view, and the lines of the jobs, to which it refers. */
struct sweep_trials {
    struct trial_line **lines;
    size_t count;
    struct sweep_view view;
};

/* Reads the jobs of a sweep, which must outlive the result. Release it with sweep_trials_release, also after a failure. */
int sweep_trials_read(struct cluster *cluster, const struct training_sweep *sweep, struct sweep_trials *ret_trials,
                      struct error *error);
void sweep_trials_release(struct sweep_trials *trials);

#endif
