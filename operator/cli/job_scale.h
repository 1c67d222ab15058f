/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes the number of workers of an elastic job, for `cox scale` and the page of `cox ui`.
 */
#ifndef COXSWAIN_CLI_JOB_SCALE_H
#define COXSWAIN_CLI_JOB_SCALE_H

#include "operator/cli/cluster.h"

/* Sets the job's number of workers by its subresource scale. The API server refuses a job that is not elastic, and a number out of its
 * bounds. Does not wait for the workers to come or go. */
int job_scale(struct cluster *cluster, const char *name, int64_t workers, struct error *error);

#endif
