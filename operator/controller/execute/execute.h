/* SPDX-License-Identifier: Apache-2.0
 *
 * Executes a plan: sends the requests of all its actions in parallel, then the one status write,
 * then the events. Refusals by the API server are noted in the job's entry, for the next plan.
 */
#ifndef COXSWAIN_CONTROLLER_EXECUTE_H
#define COXSWAIN_CONTROLLER_EXECUTE_H

#include "operator/controller/execute/job_entry.h"
#include "operator/controller/plan/plan.h"
#include "operator/kube/client.h"
#include "operator/kube/event_recorder.h"

struct executor {
    struct kube_client *client;
    struct event_recorder *recorder;
    const struct plan_options *options;
    /* Called when every request of a plan has been answered. `failed` is the first error that is
     * worth a line in the log, or a conflict if there was no other; NULL: none. */
    void (*done)(void *context, struct job_entry *entry, const struct error *failed);
    void *context;
};

/* Executes `plan` and takes it over. `job` is used only during the call; the entry must live until
 * `done` is called. That happens from the loop, even if the plan has nothing to do. */
void execute_plan(const struct executor *executor, struct job_entry *entry, const struct training_job *job,
                  struct plan *plan);

#endif
