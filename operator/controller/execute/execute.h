/* SPDX-License-Identifier: Apache-2.0
 *
 * From a plan to requests: all actions in parallel, then the one status write, then
 * the events. What the server refuses is noted in the entry, for the next plan.
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
    /* Every request is answered; `failed` names the worst that went wrong and is worth a line in the log, NULL: nothing. */
    void (*done)(void *context, struct job_entry *entry, const struct error *failed);
    void *context;
};

/* Takes the plan over. The job is only looked at during the call. `done` is called from the loop, also when there was
 * nothing to do. The entry must live until then. */
void execute_plan(const struct executor *executor, struct job_entry *entry, const struct training_job *job,
                  struct plan *plan);

#endif
