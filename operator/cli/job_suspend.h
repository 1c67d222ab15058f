/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets spec.suspend: what suspend, resume and restart share.
 */
#ifndef COXSWAIN_CLI_JOB_SUSPEND_H
#define COXSWAIN_CLI_JOB_SUSPEND_H

#include "operator/cli/cluster.h"

int job_suspend(struct cluster *cluster, const char *name, bool suspend, struct error *error);

#endif
