/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the controller of TrainingSweeps, which starts the trials of each sweep as TrainingJobs and
 * picks the best one. main.c starts it beside the controller of jobs (controller.h), which looks
 * after all TrainingJobs; the two know each other only through the API. Informers cache sweeps and
 * their trials, and each change wakes the sweep that the object belongs to. A plan is then made
 * from the caches and from what the controller remembers about the sweep (sweep_plan.h,
 * sweep_entry.h), and is executed (sweep_execute.h). If the API server does not serve sweeps, or
 * the operator may not watch them, that is logged once, and jobs are not affected.
 *
 * Life cycle: call sweep_controller_start, run the loop, call sweep_controller_stop, free the
 * client (which ends requests in flight), then call sweep_controller_free.
 */
#ifndef COXSWAIN_CONTROLLER_SWEEP_CONTROLLER_H
#define COXSWAIN_CONTROLLER_SWEEP_CONTROLLER_H

#include "operator/kube/client.h"

struct sweep_controller;

/* `name_space`: NULL: all. `controller_name`: managedBy of the trials of its sweeps (plan_is_managed_by). `instance`: for events. All are
 * borrowed. */
struct sweep_controller *sweep_controller_start(struct kube_client *client, const char *name_space,
                                                const char *controller_name, const char *instance);
/* Stops starting new work. */
void sweep_controller_stop(struct sweep_controller *controller);
void sweep_controller_free(struct sweep_controller *controller);

#endif
