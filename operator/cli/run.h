/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one job or sweep for `cox run`, and jobs for `cox demo`: applies the manifest, shows the progress
 * until the job ends or the user interrupts, and prints a summary. If no cluster is named, it starts an
 * embedded control plane (an API server and a node on this machine, control_plane.h) and an operator first,
 * and stops them at the end. The call blocks and runs the event loop.
 */
#ifndef COXSWAIN_CLI_RUN_H
#define COXSWAIN_CLI_RUN_H

#include <stdbool.h>

#include "common/event_loop.h"
#include "operator/cli/preemption.h"
#include "operator/cli/terminal.h"

#define RUN_VOLUMES_MAX 16
#define RUN_SETTINGS_MAX 64

struct run_options {
    const char *manifest;
    const char *volumes[RUN_VOLUMES_MAX]; /* "claim=directory" */
    unsigned volume_count;
    const char *settings[RUN_SETTINGS_MAX]; /* changes to the manifest (job_setting.h) */
    unsigned setting_count;
    const char *state;      /* NULL: ${XDG_STATE_HOME:-~/.local/state}/coxswain/<namespace>-<name> */
    const char *kubeconfig; /* with `context`: which cluster to use; both NULL: the embedded control plane */
    const char *context;
    const char *name_space;         /* for a manifest without a namespace; NULL: the context's, else "default" */
    bool fresh;                     /* remove an earlier run's objects from the state directory */
    bool delete_volumes;            /* with `fresh`: remove the volumes in the state directory, too */
    bool sweeps_only;               /* refuse a manifest that holds a job */
    bool quiet;                     /* do not print which volumes are deleted */
    enum preemption_target preempt; /* embedded control plane only */
    const char *resume;             /* the command that continues the job, printed after Ctrl-C */
    const char *again;              /* the same with absolute paths, kept in the run's record */
};

/* Owns its strings; release with run_outcome_release. */
struct run_outcome {
    bool succeeded;
    bool interrupted;
    bool deleted;                /* the job was deleted before it ended */
    bool plane_ended;            /* the control plane ended before the job did; run_job has failed */
    bool misfit;                 /* the job failed because its own checkpoints have another model's tensors */
    bool advised;                /* what to run after a failure has been printed */
    bool own_checkpoints;        /* the checkpoints are in the state directory */
    double accuracy;             /* NAN: unknown */
    char *weights;               /* exported file; NULL: none, or in a cluster */
    int64_t killed_at_step;      /* -1: no pod was killed */
    int64_t repeated_steps;      /* -1: unknown */
    double seconds_to_next_step; /* after the kill; NAN: unknown */
};

/* Runs the job. A job that fails is an outcome, not an error. After an error only `plane_ended` is set.
 * ERROR_ALREADY_EXISTS: the state directory or the cluster has another job of that name. */
int run_job(const struct run_options *options, struct event_loop *loop, struct terminal *terminal,
            struct run_outcome *ret_outcome, struct error *error);
void run_outcome_release(struct run_outcome *outcome);

#endif
