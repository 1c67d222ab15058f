/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists the runs of this machine (run_list.h) for the page of `cox ui --runs`, and opens those whose jobs are looked at: it connects to the
 * control plane of a run that goes on, and starts one for a run that has ended. As no `cox run` can use a directory whose control plane
 * runs, one that was started here ends when nothing has been asked of it for UI_RUN_IDLE_MS.
 */
#ifndef COXSWAIN_CLI_UI_RUNS_H
#define COXSWAIN_CLI_UI_RUNS_H

#include "operator/kube/client.h"

#define UI_RUN_IDLE_MS 10000
#define UI_RUNS_OPEN_MAX 8 /* as many curves are kept; the page compares six jobs */

struct ui_runs;

/* The loop must outlive the result. */
struct ui_runs *ui_runs_new(struct event_loop *loop);
/* Ends the control planes that were started. */
void ui_runs_free(struct ui_runs *runs);

/* Reads the list of runs if it is time to (run_rows_read). After a failure the list is as it was; ui_runs_write returns the error. */
void ui_runs_read(struct ui_runs *runs);
uint64_t ui_runs_version(const struct ui_runs *runs);
/* Appends the list of runs (run_rows_write). */
int ui_runs_write(struct ui_runs *runs, uint64_t version, struct buffer *out, struct error *error);

/* The runs own the pointers, until the next call of ui_runs_open, ui_runs_close or ui_runs_work. */
struct ui_run {
    struct kube_client *client;
    const char *directory;
    bool kept;         /* the run has ended */
    const char *again; /* as in struct cluster */
};

/* Connects to the control plane of the run, or starts one, during which the loop runs. ERROR_NOT_FOUND: there is no such run any more. */
int ui_runs_open(struct ui_runs *runs, const char *run, struct ui_run *ret_run, struct error *error);
/* Forgets the connection to a run whose control plane does not answer: the next ui_runs_open makes a new one. */
void ui_runs_close(struct ui_runs *runs, const char *run);
/* Deletes the directory of a run that has ended, as `cox runs delete` does: also its checkpoints and weights. Refuses if it is in use, or
 * if another run uses a volume in it. */
int ui_runs_delete(struct ui_runs *runs, const char *run, struct error *error);
/* Ends control planes that have been idle for UI_RUN_IDLE_MS. Call it after each turn of the loop. */
void ui_runs_work(struct ui_runs *runs);

#endif
