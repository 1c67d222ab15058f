/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the job document, the part of a TrainingJob that a worker needs, for main.c at the start of the
 * process: from the file of --job if it is given, else from the environment variable COXSWAIN_JOB. The file
 * is YAML or JSON and holds a job document or a whole TrainingJob; fields of the spec that only the operator
 * uses, such as roles and runPolicy, are ignored. Fails if the document is invalid.
 */
#ifndef COXSWAIN_LAUNCH_JOB_SOURCE_H
#define COXSWAIN_LAUNCH_JOB_SOURCE_H

#include "common/error.h"
#include "common/job/job_document.h"
#include "worker/launch/arguments.h"
#include "worker/launch/identity.h"

/* Reads the document; the caller releases it with job_document_release. */
int job_source_read(const struct arguments *arguments, const struct identity *identity,
                    struct job_document *ret_document, struct error *error);

#endif
