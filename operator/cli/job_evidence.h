/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a job with its pods and events from the cluster, for the commands why and describe.
 */
#ifndef COXSWAIN_CLI_JOB_EVIDENCE_H
#define COXSWAIN_CLI_JOB_EVIDENCE_H

#include "operator/cli/cluster.h"
#include "operator/cli/why.h"

struct job_evidence {
    struct json *job, *pods, *events;
};

/* Reads the three. Release them with job_evidence_release, also after a failure. */
int job_evidence_gather(struct cluster *cluster, const char *name, struct job_evidence *ret_evidence,
                        struct error *error);
void job_evidence_release(struct job_evidence *evidence);

/* Returns the input for why_print and job_describe, with the current time. Borrows `evidence`. */
struct why_input job_evidence_input(const struct job_evidence *evidence);

#endif
