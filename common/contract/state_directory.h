/* SPDX-License-Identifier: Apache-2.0
 *
 * Locks and clears the state directory of an embedded control plane (coxswain-standalone --state), and names the files in it.
 * coxswain-standalone locks its directory while it runs. A command of cox that starts a control plane locks the directory until that
 * control plane serves; a second command that starts one waits meanwhile. Commands that only read share a control plane, which runs until
 * the last of them has ended. `cox run --fresh` clears the directory. Volumes of claims that have no directory of their own are stored
 * there too; they hold the user's data and are deleted only on request. `cox runs` lists and deletes state directories.
 */
#ifndef COXSWAIN_COMMON_CONTRACT_STATE_DIRECTORY_H
#define COXSWAIN_COMMON_CONTRACT_STATE_DIRECTORY_H

#include <signal.h>
#include <stdbool.h>

#include "common/error.h"

#define STATE_DATABASE "objects.db"
#define STATE_KUBECONFIG "kubeconfig"
#define STATE_PORT "port"
#define STATE_ALIVE "alive" /* touched while pods run, so that the next start knows until when they did */
#define STATE_CERTIFICATES "pki"
#define STATE_PODS "pods"
#define STATE_VOLUMES "volumes"     /* volumes/<namespace>/<claim> */
#define STATE_MADE_FROM "made-from" /* written by cox demo */
#define STATE_BEST "best.yaml"      /* written by cox run of a sweep */
#define STATE_TRIALS "trials.csv"
#define STATE_JOB "job.json"  /* written by cox run: the manifest that it applied */
#define STATE_RUN "run.json"  /* written by cox run: how the run stands (run_record.h) */
#define STATE_CHECK "check"   /* written by cox run: an API server that checks the next manifest */
#define STATE_USERS "used-by" /* written by cox run: which other runs use volumes of this one (run_mark.h) */

/* Ends a control plane without pods as soon as no other command shares it (STATE_TO_SHARE). SIGTERM ends it at once. */
#define STATE_END_SIGNAL SIGUSR1

/* What a process locks the directory for. */
enum state_use {
    STATE_TO_CLEAR, /* to delete files in it: no other process starts or runs a control plane there */
    STATE_TO_START, /* to start a control plane, until that serves: no other process starts or runs one there */
    STATE_TO_READ,  /* to run a control plane without pods, for a command that reads what a run has left */
    STATE_TO_RUN,   /* to run a control plane with pods */
    STATE_TO_SHARE, /* to use a control plane without pods that another command has started; several may */
    STATE_TO_END,   /* to end a control plane without pods: nobody shares it from then on */
};

/* Locks the directory, which must exist, until the caller closes `*ret_lock`; a child process has the descriptor too until it executes a
 * program. ERROR_UNAVAILABLE if another process, or this one, holds a lock that excludes this one: the message names the command that has
 * started that process, if it can be read. */
int state_directory_lock(const char *path, enum state_use use, int *ret_lock, struct error *error);

/* What processes do with a directory, and for how long. */
enum state_holder {
    STATE_FREE,
    STATE_STARTING, /* one starts a control plane or deletes files: a few seconds */
    STATE_READING,  /* a control plane without pods runs: until the command that reads has ended */
    STATE_RUNNING,  /* one with pods runs */
};

/* Returns the first of STATE_STARTING, STATE_RUNNING and STATE_READING that is true. Changes nothing, and ends no lock. */
enum state_holder state_directory_holder(const char *path);

/* Returns whether a process holds a lock of STATE_TO_SHARE. */
bool state_directory_is_shared(const char *path);

/* Returns whether `path` is the state directory of a control plane: it has the database or the log of one. */
bool state_directory_is_one(const char *path);

/* Checks that `path` may be cleared as a state directory: it is missing, empty, or holds a control
 * plane's database or (if the control plane failed before it created that) its log. Otherwise
 * ERROR_INVALID. */
int state_directory_check(const char *path, struct error *error);

/* Deletes the files that Coxswain's programs have made, the database last, and with `volumes_too` the volumes. Keeps all
 * other files, and removes nothing if state_directory_check fails. The caller must hold the
 * lock. */
int state_directory_forget(const char *path, bool volumes_too, struct error *error);

/* Locks the directory and deletes the files that Coxswain's programs have made, the volumes and, unless it has other files, the directory
 * itself. ERROR_UNAVAILABLE if the directory is in use, ERROR_INVALID if it is not a state directory. `*ret_gone` says whether the
 * directory was deleted. */
int state_directory_delete(const char *path, bool *ret_gone, struct error *error);

#endif
