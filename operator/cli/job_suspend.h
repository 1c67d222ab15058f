/* SPDX-License-Identifier: Apache-2.0
 *
 * Suspends and resumes jobs and sweeps by setting spec.suspend, for the commands suspend, resume, restart and
 * sweep. The operator then removes or creates the pods.
 */
#ifndef COXSWAIN_CLI_JOB_SUSPEND_H
#define COXSWAIN_CLI_JOB_SUSPEND_H

#include "operator/cli/cluster.h"

/* Sets spec.suspend to `suspend`. Does not wait for the pods to end or to start. */
int job_suspend(struct cluster *cluster, const char *name, bool suspend, struct error *error);
/* Sets spec.suspend of a TrainingSweep, which then suspends or resumes its trials. */
int sweep_suspend(struct cluster *cluster, const char *name, bool suspend, struct error *error);

#endif
