/* SPDX-License-Identifier: Apache-2.0
 *
 * A job with its pods and events, read from the cluster: what why and describe
 * judge by.
 */
#ifndef COXSWAIN_CLI_JOB_EVIDENCE_H
#define COXSWAIN_CLI_JOB_EVIDENCE_H

#include "operator/cli/cluster.h"
#include "operator/cli/why.h"

struct job_evidence {
    struct json *job, *pods, *events;
};

/* Release with job_evidence_release, also after a failure. */
int job_evidence_gather(struct cluster *cluster, const char *name, struct job_evidence *ret_evidence,
                        struct error *error);
void job_evidence_release(struct job_evidence *evidence);

/* Borrows it; the time is now. */
struct why_input job_evidence_input(const struct job_evidence *evidence);

#endif
