/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one job from its manifest to its end, in front of a person: starts a
 * control plane and an operator when no cluster is asked for, applies, follows,
 * sums up. What `cox run` and `cox demo` share.
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
    const char *kubeconfig; /* a cluster instead; NULL with `context` NULL: the embedded control plane */
    const char *context;
    const char *name_space;         /* for a manifest that names none; NULL: default */
    bool fresh;                     /* forget an earlier run in the state directory, */
    bool delete_volumes;            /* and the volumes that lie there, */
    bool quiet;                     /* without a word of it */
    enum preemption_target preempt; /* half-way; embedded control plane only */
    const char *resume;             /* the command that a person types to go on after Ctrl-C */
};

/* Strings are the outcome's; release with run_outcome_release. */
struct run_outcome {
    bool succeeded;
    bool interrupted;
    bool deleted;           /* the job was, before it was over */
    bool misfit;            /* it failed since its checkpoints are of another model */
    bool own_checkpoints;   /* they lie in the state directory */
    double accuracy;        /* NAN: unknown */
    char *weights;          /* exported file; NULL: none, or in a cluster */
    int64_t killed_at_step; /* -1: nobody was */
    int64_t repeated_steps; /* -1: unknown */
    double seconds_to_next_step;
};

/* A job that fails is an outcome, not an error. ERROR_ALREADY_EXISTS: an earlier run of that name was of another job. */
int run_job(const struct run_options *options, struct event_loop *loop, struct terminal *terminal,
            struct run_outcome *ret_outcome, struct error *error);
void run_outcome_release(struct run_outcome *outcome);

#endif
