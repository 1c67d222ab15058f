/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a TrainingJob, its pods, its events, its sweep and its place in a queue from the cluster, as the input of `cox why` (why.h) and
 * `cox describe` (job_describe.h). Makes blocking requests, one after another. Events are matched by UID,
 * since another pod may have had the same name; they are sorted, oldest first.
 */
#ifndef COXSWAIN_CLI_JOB_EVIDENCE_H
#define COXSWAIN_CLI_JOB_EVIDENCE_H

#include "operator/cli/cluster.h"
#include "operator/cli/why.h"

struct job_evidence {
    struct json *job, *pods, *events;
    struct json *sweep; /* of a trial that is suspended; NULL: it is no such trial, or its sweep cannot be read */
    struct json
        *pending; /* what waits in the queue in which the job waits; NULL: it waits in none, or that cannot be read */
    bool kept;    /* as in struct cluster */
    const char *again; /* borrowed from the cluster */
};

/* Reads them. Release them with job_evidence_release, also after a failure. */
int job_evidence_gather(struct cluster *cluster, const char *name, struct job_evidence *ret_evidence,
                        struct error *error);
void job_evidence_release(struct job_evidence *evidence);

/* Returns the input for why_print and job_describe, with the current time. Borrows `evidence`. */
struct why_input job_evidence_input(const struct job_evidence *evidence);

#endif
