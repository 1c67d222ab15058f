/* SPDX-License-Identifier: Apache-2.0
 *
 * Refuses jobs that this worker cannot run, by rules that need the crew's size, the number of logical
 * shards or of held-out examples. (The rules that the operator can check too are in
 * common/job/worker_rules.h.) The trainer checks each rule as soon as its number is known, before
 * training. The error names the spec field and what to change.
 */
#ifndef COXSWAIN_TRAIN_SUPPORT_H
#define COXSWAIN_TRAIN_SUPPORT_H

#include "common/error.h"
#include "common/job/job_document.h"
#include "worker/launch/crew.h"

/* Fails with ERROR_UNSUPPORTED (69) for what this build lacks, with ERROR_INVALID (64) for a crew
 * that contradicts the strategy. */
int support_check(const struct job_document *job, const struct crew *crew, struct error *error);

/* Checks the number of logical shards, once it is known. ERROR_INVALID. */
int support_check_shards(const struct job_document *job, int64_t logical_shards, struct error *error);

/* Checks statistics: Global of batch normalisations on a device whose operations are not the worker's own CPU operations, once the
 * number of logical shards is known. ERROR_UNSUPPORTED. */
int support_check_statistics(const struct job_document *job, int64_t logical_shards, struct error *error);

/* Checks the number of held-out examples, once it is known. ERROR_INVALID. */
int support_check_validation(const struct job_document *job, int64_t examples, struct error *error);

#endif
