/* SPDX-License-Identifier: Apache-2.0
 *
 * Executes the plan of a sweep (sweep_plan.h) for the controller of sweeps: sends the requests of
 * all its actions in parallel, then, when all are answered, the one status write, then the events.
 * If the API server refuses to create a trial, that is noted in the sweep's entry, which the next
 * plan reads. If the status write fails, no events are sent. Only one plan of a sweep may be in
 * execution at a time.
 */
#ifndef COXSWAIN_CONTROLLER_SWEEP_EXECUTE_H
#define COXSWAIN_CONTROLLER_SWEEP_EXECUTE_H

#include "operator/controller/execute/sweep_entry.h"
#include "operator/kube/client.h"
#include "operator/kube/event_recorder.h"

struct sweep_executor {
    struct kube_client *client;
    struct event_recorder *recorder;
    /* Called when every request of a plan has been answered. `failed` is the first error; NULL: none. `moved`: an object was written, so
     * the sweep must be planned again. */
    void (*done)(void *context, struct sweep_entry *entry, const struct error *failed, bool moved);
    void *context;
};

/* Executes `plan` and takes it over. `sweep` is used only during the call; the entry must live until `done` is called, at the
 * earliest before this returns. */
void sweep_execute(const struct sweep_executor *executor, struct sweep_entry *entry, const struct training_sweep *sweep,
                   struct sweep_plan *plan);

#endif
