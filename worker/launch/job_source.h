/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the job document comes from: --job FILE (YAML or JSON; a job document or
 * a whole TrainingJob, of whose spec that counts which is not for the operator
 * alone, such as roles and runPolicy), else COXSWAIN_JOB.
 */
#ifndef COXSWAIN_LAUNCH_JOB_SOURCE_H
#define COXSWAIN_LAUNCH_JOB_SOURCE_H

#include "common/error.h"
#include "common/job/job_document.h"
#include "worker/launch/arguments.h"
#include "worker/launch/identity.h"

int job_source_read(const struct arguments *arguments, const struct identity *identity,
                    struct job_document *ret_document, struct error *error);

#endif
