/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller: informers for jobs, pods and Services feed a queue of job keys;
 * each key is planned from the caches alone and the plan executed.
 *
 * Life cycle: controller_start -> (loop runs) -> controller_stop, then free the
 * client, then controller_free: requests under way end in between.
 */
#ifndef COXSWAIN_CONTROLLER_CONTROLLER_H
#define COXSWAIN_CONTROLLER_CONTROLLER_H

#include "common/buffer.h"
#include "common/http_client.h"
#include "operator/controller/plan/plan.h"
#include "operator/kube/client.h"

struct controller;

struct controller_options {
    const char *name_space; /* NULL: all */
    const char *instance;   /* for events */
    bool holds_lease;       /* nobody else acts; else another operator may, for a moment or longer */
    struct plan_options plan;
};

/* `pods_client` speaks plain HTTP to pods. Clients must outlive controller_stop; options are copied, their strings
 * borrowed. */
struct controller *controller_start(struct kube_client *client, struct http_client *pods_client,
                                    const struct controller_options *options);
/* Takes up nothing new. */
void controller_stop(struct controller *controller);
void controller_free(struct controller *controller);

/* Every cache has its first state. */
bool controller_synced(const struct controller *controller);

/* What the API server says where it does not let the operator watch (any more) what it needs; NULL: nothing. */
const struct error *controller_refusal(const struct controller *controller);

/* Appends Prometheus text: coxswain_reconciles_total, coxswain_reconcile_duration_seconds, coxswain_queue_depth,
 * coxswain_jobs{state}, coxswain_pods_cached, coxswain_watch_refused{resource}. */
int controller_write_metrics(const struct controller *controller, struct buffer *out, struct error *error);

#endif
