/* SPDX-License-Identifier: Apache-2.0
 *
 * What this worker can do of all that a job may ask for, as far as the rules of
 * the job document (common/job/worker_rules.h) cannot tell: whether crew and job
 * go together. A job beyond it ends at once, with a sentence.
 */
#ifndef COXSWAIN_TRAIN_SUPPORT_H
#define COXSWAIN_TRAIN_SUPPORT_H

#include "common/error.h"
#include "common/job/job_document.h"
#include "worker/launch/crew.h"

/* ERROR_UNSUPPORTED (69) for what this build lacks, ERROR_INVALID (64) for a crew that contradicts the strategy. */
int support_check(const struct job_document *job, const struct crew *crew, struct error *error);

/* Likewise, once it is known into how many shards a batch is cut. */
int support_check_shards(const struct job_document *job, int64_t logical_shards, struct error *error);

/* Likewise, once it is known how many held-out examples there are. */
int support_check_validation(const struct job_document *job, int64_t examples, struct error *error);

#endif
