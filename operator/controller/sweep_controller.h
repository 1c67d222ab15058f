/* SPDX-License-Identifier: Apache-2.0
 *
 * Reconciles TrainingSweeps: informers for sweeps and for the TrainingJobs that are their trials wake the sweep that an object
 * belongs to. A plan is made from the caches alone and then executed. What the trials do, the other controller sees to
 * (controller.h).
 *
 * Life cycle: call sweep_controller_start, run the loop, call sweep_controller_stop, free the client (which ends requests in
 * flight), then call sweep_controller_free.
 */
#ifndef COXSWAIN_CONTROLLER_SWEEP_CONTROLLER_H
#define COXSWAIN_CONTROLLER_SWEEP_CONTROLLER_H

#include "operator/kube/client.h"

struct sweep_controller;

/* `name_space`: NULL: all. `instance`: for events. Both are borrowed. */
struct sweep_controller *sweep_controller_start(struct kube_client *client, const char *name_space,
                                                const char *instance);
/* Stops starting new work. */
void sweep_controller_stop(struct sweep_controller *controller);
void sweep_controller_free(struct sweep_controller *controller);

#endif
