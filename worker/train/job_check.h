/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements --check-job, with which `cox run` asks whether a job can train on this machine before any pod is created. Opens what a chief would
 * open before it joins its crew: the model, the plans of batches and of memory, and the examples. Trains nothing, joins nobody and
 * writes nothing. The errors are those that a pod would end with. Prints one line of JSON:
 *
 *   {"parameters": 79510, "batch": 32, "steps": 90, "examples": 600, "heldOut": 120, "classes": 3, "labels": 3, "memory": 9437184, "members": 2}
 *
 * `memory`: bytes that the chief's plan needs (memory_budget.h); `members`: processes on this machine. GPUs that the job requires must be
 * there; beyond that, all devices are taken for CPUs, so there is no `memory` for a job with GPUs. There are no `steps` and `examples` if
 * the data is in a storage that no --storage names, and nothing at all for a job whose model is a program or uses what only GPUs support.
 */
#ifndef COXSWAIN_TRAIN_JOB_CHECK_H
#define COXSWAIN_TRAIN_JOB_CHECK_H

#include "common/contract/exit_code.h"
#include "common/error.h"
#include "common/job/job_document.h"
#include "worker/launch/arguments.h"
#include "worker/launch/identity.h"

/* On failure *ret_code is the exit code for the process. */
int job_check_run(const struct arguments *arguments, const struct identity *identity, const struct job_document *job,
                  enum exit_code *ret_code, struct error *error);

#endif
