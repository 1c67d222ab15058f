/* SPDX-License-Identifier: Apache-2.0
 *
 * Executes the plan of a job (plan.h) for the controller: sends the requests of all its actions in
 * parallel, then, when all are answered, the one status write, then the events. A request that
 * depends on another one, such as the Service on the Secret with the crew's key, is sent after the
 * other one's answer. If the API server refuses to create an object, that is noted in the job's
 * entry (job_entry.h), which the next plan reads. If the status write fails, no events are sent.
 * Only one plan of a job may be in execution at a time; the work queue ensures that.
 */
#ifndef COXSWAIN_CONTROLLER_EXECUTE_H
#define COXSWAIN_CONTROLLER_EXECUTE_H

#include "operator/controller/execute/job_entry.h"
#include "operator/controller/execute/notifier.h"
#include "operator/controller/plan/plan.h"
#include "operator/kube/client.h"
#include "operator/kube/event_recorder.h"

struct executor {
    struct kube_client *client;
    struct event_recorder *recorder;
    const struct plan_options *options;
    struct notifier *notifier; /* NULL: there is no sink */
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
