/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements --check-job, with which `cox run` asks whether a job can train on this machine before any pod is created. Opens the model, the
 * plans of batches and of memory, and the examples, as a chief does before it joins its crew. If the job saves checkpoints on this machine,
 * compares the tensors of the newest whole one in its folder, from which the job would go on, with those of the model and of the optimizer;
 * it reads the checkpoint's headers alone, so that a large one takes no longer.
 * Trains nothing, joins no crew and writes no file. The errors are those that a pod would end with. Prints lines of JSON, each of which
 * replaces the one before, as soon as it knows more (the last one is shown here in two), since the data may be large:
 *
 *   {"parameters": 79510, "batch": 32, "members": 2, "memory": 9437184}
 *   {"parameters": 79510, "batch": 32, "members": 2, "memory": 9437184,
 *    "steps": 90, "examples": 600, "heldOut": 120, "classes": 3, "labels": 3}
 *
 * `memory`: bytes that the chief's plan needs (memory_budget.h); `members`: processes on this machine. GPUs that the job requires must be
 * there; otherwise every device is treated as a CPU, so there is no `memory` for a job with GPUs. `steps` and all after it are left out if
 * the data is in a storage that no --storage names. `misfit`, if there is one, says how the checkpoint differs: that is the error once the
 * data has been opened. The object is empty for a job whose model is a program or uses a feature that only GPUs
 * support.
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
