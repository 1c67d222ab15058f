/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the record of a run (run_record.h) while `cox run` follows it: run.c calls run_keep_begin once the manifest is applied, one of the
 * update functions on each turn, and run_keep_end at the end. A record that cannot be written is reported once on stderr; the run is
 * unaffected.
 */
#ifndef COXSWAIN_CLI_RUN_KEEP_H
#define COXSWAIN_CLI_RUN_KEEP_H

#include "common/job/training_sweep.h"
#include "operator/cli/job_view.h"
#include "operator/cli/manifest.h"
#include "operator/cli/run_record.h"

struct run_keep {
    char *state; /* NULL: nothing is kept */
    struct run_record record;
    struct run_record earlier; /* of the same job, from a run before this one */
    int64_t written_ms;
    bool reported; /* the error of a record that could not be written has been printed */
};

struct run_keep_options {
    const char *const *volumes; /* the values of the --volume options, "claim=directory" */
    unsigned volume_count;
    const char *command; /* as in run_record.h */
};

void run_keep_begin(struct run_keep *keep, const char *state, const struct manifest *manifest,
                    const struct run_keep_options *options, int64_t now_ms);
/* Write the record every few seconds, and at once when the job or sweep is suspended or resumed. */
void run_keep_job(struct run_keep *keep, const struct job_view *view, int64_t now_ms);
void run_keep_sweep(struct run_keep *keep, const struct training_sweep *sweep, int64_t now_ms);
/* Takes over the progress and times of `before`, the record that --fresh has deleted, if the new job reported no step because it found all
 * of them done: `step` is that of the newest checkpoint. */
void run_keep_take_over(struct run_keep *keep, const struct run_record *before, int64_t step);
/* If the job was over before this run, which only showed it, the record keeps the time of its end. A suspended run that is interrupted
 * stays Suspended. */
void run_keep_end(struct run_keep *keep, enum run_state state, int64_t now_ms);
void run_keep_release(struct run_keep *keep);

#endif
