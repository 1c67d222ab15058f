/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks a job on this machine before `cox run` starts a control plane for it, so that a mistake costs no pods: whether the layers fit
 * together, whether the files of the data are there and fit the model, and whether the memory is enough. coxswain-worker opens all of this,
 * as the pods would (worker/train/job_check.h), and its error is returned. A value that is only suspicious, such as a learning rate of 50,
 * leads to a warning.
 */
#ifndef COXSWAIN_CLI_RUN_CHECK_H
#define COXSWAIN_CLI_RUN_CHECK_H

#include "common/buffer.h"
#include "common/event_loop.h"
#include "common/job/training_job.h"
#include "common/job/training_sweep.h"
#include "operator/cli/manifest.h"
#include "operator/cli/summary.h"

/* The worker is ended after this time; then only what it has found by then counts. */
#define RUN_CHECK_SECONDS 20
#define RUN_WARNINGS_MAX (16 * 1024)

/* This machine. */
struct run_machine {
    int64_t memory; /* available bytes; -1: unknown */
    int processors;
};
struct run_machine run_machine_read(void);

/* Checks the manifest's job, or a sweep's first trial: that trial must be a valid job; if coxswain-worker refuses only that trial's values,
 * and not the template, this is a warning. Files that a storage's `download` brings are not looked for. If the job `continues` from the
 * checkpoints in its folder, it is refused if the newest one has other tensors than its model and its optimizer; otherwise none is looked
 * at. Appends a line for each warning to `warnings`. Runs the loop, and returns early with 0 once `*interrupted` is set. Returns 0 for a
 * manifest that the API server will refuse, since its message is better; for jobs of other frameworks and programs; and if coxswain-worker
 * cannot be started. */
int run_check(const struct manifest *manifest, const struct storage_place *place, bool continues,
              struct event_loop *loop, const bool *interrupted, struct buffer *warnings, struct error *error);

/* Makes the job of a trial of the manifest's sweep, with the values that follow from the spec. Fails if they cannot be put into the
 * template. Free the job with json_free. */
int run_check_trial(const struct manifest *manifest, const struct training_sweep *sweep, int64_t trial,
                    struct json **ret_job, struct error *error);

/* Refuses a job whose pods request more GPUs together than this machine has, since they would wait for ever. `are_named`: those that the
 * user has named in CUDA_VISIBLE_DEVICES are counted. Exported for tests. */
int run_check_gpus(const struct training_job *job, unsigned gpus, bool are_named, struct error *error);
/* Appends a warning if so many jobs like this one that run at a time need more GPUs together, so that some wait. Exported for tests. */
void run_check_warn_of_gpus(const struct training_job *job, int64_t trials, unsigned gpus, struct buffer *warnings);

/* Appends the warnings about a job to which the worker has given `answer` (job_check.h), an object. `trials`: so many jobs like this one
 * run at a time; 1 unless it is a trial of a sweep. Exported for tests. */
void run_check_warn(const struct training_job *job, const struct json *answer, int64_t trials,
                    struct run_machine machine, struct buffer *warnings);
/* Appends a warning for each value of a sweep's parameter that makes a batch of more examples than there are, which `answer` about the
 * first trial says. Exported for tests. */
void run_check_warn_of_batches(const struct training_sweep *sweep, const struct training_job *trial,
                               const struct json *answer, struct buffer *warnings);

#endif
